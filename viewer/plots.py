"""Plots for notebooks: each takes a catalog and returns an altair chart.

    from evicat.catalog import Catalog
    from evicat.viewer import plots

    catalog = Catalog.open("my.catalog")
    plots.timeline(catalog, "harbour.mp4")
    plots.coverage(catalog).save("coverage.html", inline=True)

A chart holds what it shows, so that it opens without the catalog; nothing is read again when it is shown.
"""

from __future__ import annotations

from evicat.viewer.plots_coverage import coverage
from evicat.viewer.plots_factors import factors
from evicat.viewer.plots_latency import latency
from evicat.viewer.plots_texts import embedding_map, lengths
from evicat.viewer.plots_timeline import timeline

__all__ = ["coverage", "embedding_map", "factors", "latency", "lengths", "timeline"]

"""How good a catalog looks from within: measures per producer, without a model and without labels.

They find what is broken (repeats, failures, times that cannot be, narratives that nothing bears out), not
what is wrong: a fluent description of another video would pass. What asks for more than the catalog stands
in :mod:`.measures.again` (the model), :mod:`.measures.motion` (the media), :mod:`.measures.clock` (gold
texts).
"""

from __future__ import annotations

import polars as pl

from evicat.catalog.measures.card import CARD_SCHEMA, MEASURES, Bound, Measure, card_of, shown_producers
from evicat.catalog.measures.entries import outcomes, texts, times
from evicat.catalog.measures.kinds import of_kind
from evicat.catalog.query import Catalog

__all__ = ["CARD_SCHEMA", "MEASURES", "Bound", "Measure", "quality"]


def quality(catalog: Catalog, video: str | None = None, *, seed: int = 0) -> pl.DataFrame:
    """The score card of every producer that the view shows, schema :data:`CARD_SCHEMA`.

    ``seed`` chooses the descriptions that are looked for again. A measure for which there is nothing to be
    measured is left out.

    Raises:
        UsageError: no such video.
    """
    entries, coverage = catalog.entries(video), catalog.coverage(video)
    cards = [CARD_SCHEMA.to_frame()]
    for producer in shown_producers(catalog).to_dicts():
        is_its = pl.col("producer_id") == producer["producer_id"]
        own, windows = entries.filter(is_its), coverage.filter(is_its)
        found = [
            *outcomes(windows),
            *texts(catalog, own, producer["kind"], seed),
            *times(catalog, own),
            *of_kind(catalog, own, producer["kind"], windows["asset_id"].unique()),
        ]
        cards.append(card_of(producer, found))
    return pl.concat(cards)

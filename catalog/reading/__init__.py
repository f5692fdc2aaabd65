"""Reading: what answers from a catalog are made of. ``evicat.catalog.query`` puts it together."""

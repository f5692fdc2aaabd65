"""Where catalogs are kept: tables, journals, staged chunks, group commits and the head that ties them."""

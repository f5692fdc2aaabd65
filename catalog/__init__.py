"""Making and reading evidence catalogs."""

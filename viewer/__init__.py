"""Looking at a catalog: the report page, the web viewer and plots. Reads, and never writes, a catalog."""

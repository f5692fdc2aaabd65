"""Acting on a catalog: tools that a model calls, and the trace of what it called."""

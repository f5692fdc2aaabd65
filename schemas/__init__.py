"""The values that flow through evicat, and the rules that they keep. No I/O happens here."""

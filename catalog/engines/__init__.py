"""Engines: whatever runs a chat model, in this process or behind a server, under one interface."""

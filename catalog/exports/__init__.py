"""Entries in files that other tools read: tables for training, captions for players and editors."""

"""Vocabularies that come with evicat: one TOML file each."""

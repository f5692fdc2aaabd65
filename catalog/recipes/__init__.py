"""Recipes that ship with evicat."""

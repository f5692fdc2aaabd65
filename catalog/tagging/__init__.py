"""Factor tags: vocabularies, what tags by them, and how good that is."""

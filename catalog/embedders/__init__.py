"""From texts to normalised vectors."""

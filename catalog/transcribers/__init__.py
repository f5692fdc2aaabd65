"""From sound to timed speech segments."""

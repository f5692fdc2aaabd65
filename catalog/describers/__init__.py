"""From the frames (or entries) of a window to a checked record and its text."""

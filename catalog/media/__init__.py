"""From a media file to its facts, frames, sound and subtitles, all on one timeline."""

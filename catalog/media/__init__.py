"""From a media file to its facts, frames, sound and subtitles, all on one timeline."""

_SUFFIXES = (
    "3gp aac aiff asf avi flac flv gif m2ts m4a m4v mka mkv mov mp3 mp4 mpeg mpg mts mxf "
    "oga ogg ogv opus rm rmvb ts vob wav webm wma wmv"
)
MEDIA_SUFFIXES = frozenset(f".{suffix}" for suffix in _SUFFIXES.split())
"""What is taken from a folder, in any case. A file that is named itself is taken whatever its suffix."""

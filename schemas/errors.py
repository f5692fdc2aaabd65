"""Every error that evicat raises on purpose.

    EvicatError
    ├── UsageError               the request is wrong: fix it and call again (CLI exit code 2)
    │   ├── UnknownNameError     a name that no list holds; the message holds the list
    │   ├── RecipeError          a recipe or profile does not fit its schema
    │   ├── CatalogError         what the URI holds is not a catalog that this release can use
    │   └── MissingExtraError    an optional package is not installed
    ├── AssetError               one media file cannot be used (further); the others go on
    │   ├── UnreadableMediaError not media, or broken before its first sample
    │   ├── DecodeStalledError   the decoder made no progress within its time limit
    │   └── DecoderCrashedError  the decoding process died
    ├── WindowError              one window has no answer; its outcome is ``failed``
    ├── BusyError                somebody else holds what is needed; try again later
    └── IntegrityError           stored data contradicts itself; nothing is written any more

The class says what happens next; flows read it and decide nothing by message.
"""


class EvicatError(Exception):
    """Base of all errors that evicat raises on purpose."""

    @property
    def error_class(self) -> str:
        """Short name that is stored in the ledger, such as ``UnreadableMedia``."""
        return type(self).__name__.removesuffix("Error")


class UsageError(EvicatError):
    """The request is wrong."""


class UnknownNameError(UsageError):
    """A name that is not known; the message lists the names that are."""

    def __init__(self, what: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {what} {name!r}; known: {', '.join(sorted(known)) or 'none'}")


class RecipeError(UsageError):
    """A recipe or profile does not fit its schema."""


class CatalogError(UsageError):
    """What the URI holds is not a catalog that this release can use."""


class MissingExtraError(UsageError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'evicat[{extra}]'")


class AssetError(EvicatError):
    """One media file cannot be used (further); the others go on."""


class UnreadableMediaError(AssetError):
    """Not media, or broken before its first sample."""


class DecodeStalledError(AssetError):
    """The decoder made no progress within its time limit."""


class DecoderCrashedError(AssetError):
    """The decoding process died."""


class WindowError(EvicatError):
    """One window has no answer."""


class BusyError(EvicatError):
    """Somebody else holds what is needed."""


class IntegrityError(EvicatError):
    """Stored data contradicts itself."""

"""Every error that evicat raises on purpose.

    EvicatError
    ├── UsageError               the request is wrong: fix it and call again (CLI exit code 2)
    │   ├── UnknownNameError     a name that no list holds; the message holds the list
    │   ├── RecipeError          a recipe or profile does not fit its schema
    │   ├── CatalogError         what the URI holds is not a catalog that this release can use
    │   └── MissingExtraError    an optional package is not installed
    ├── AssetError               one media file cannot be used (further); the others go on
    │   ├── UnreadableMediaError not media, or broken before its first sample
    │   │   └── OutOfReachError  gone, or its disk or permissions fail: its bytes are not to blame
    │   ├── DecodeStalledError   the decoder made no progress within its time limit
    │   └── DecoderCrashedError  the decoding process died
    ├── WindowError              one window has no answer; its outcome is ``failed``
    │   ├── TruncatedError       the answer was cut at the token limit
    │   ├── AnswerError          the answer breaks its schema, or repeats itself
    │   ├── RequestError         the engine refuses this request for what it is
    │   │   └── TooLongError     its prompt is too long for the engine, or holds too many images
    │   └── RefusedError         the model declined; the outcome is ``refused``
    ├── EngineDownError          a model cannot be reached any more; the run ends, its windows are pending
    ├── BusyError                somebody else holds what is needed; try again later
    ├── DiskFullError            nothing more can be written; what is stored stays, the run ends
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


class OutOfReachError(UnreadableMediaError):
    """The file is gone, or its disk or permissions fail: its bytes are not to blame."""


class DecodeStalledError(AssetError):
    """The decoder made no progress within its time limit."""


class DecoderCrashedError(AssetError):
    """The decoding process died."""


class WindowError(EvicatError):
    """One window has no answer. What the model said all the same, and what it took, goes to the ledger."""

    def __init__(
        self,
        message: str,
        *,
        raw: str = "",
        attempts: int = 1,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
    ) -> None:
        super().__init__(message)
        self.raw = raw
        self.attempts = attempts
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens


class TruncatedError(WindowError):
    """The answer was cut at the token limit."""


class AnswerError(WindowError):
    """The answer breaks its schema, or repeats itself."""


class RequestError(WindowError):
    """The engine refuses this request for what it is, such as a bad image."""


class TooLongError(RequestError):
    """The prompt is longer than the engine takes, or holds more images; a shorter one may be answered."""


class RefusedError(WindowError):
    """The model declined to answer."""


class EngineDownError(EvicatError):
    """A model cannot be reached or loaded; the windows that wait for it stay pending."""


class BusyError(EvicatError):
    """Somebody else holds what is needed."""


class DiskFullError(EvicatError):
    """The disk (or the quota) is full: nothing more can be written."""


class IntegrityError(EvicatError):
    """Stored data contradicts itself."""


def first_line(error: BaseException) -> str:
    """What an error of a library says, in one line without a full stop, to stand in a message of ours."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:400].rstrip(".")

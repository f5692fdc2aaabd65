"""The device of a profile, for all models that torch runs in this process."""

from __future__ import annotations

from evicat.schemas.errors import UsageError, first_line
from evicat.schemas.recipe import Profile


def device_of(profile: Profile) -> str:
    """The device of the profile, if torch can use it.

    Raises:
        UsageError: it cannot; says what to change.
    """
    import torch

    wanted = profile.device
    mend = 'write device = "cpu" into the profile, or install a torch build for this device'
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise UsageError(
            f"device = {wanted!r} of the profile is none that torch knows; write cpu, cuda, cuda:1 or mps"
        ) from None
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count <= (device.index or 0):
            raise UsageError(
                f"device = {wanted!r} of the profile: torch {torch.__version__} sees {count} CUDA devices; "
                f"{mend}"
            )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError(f"device = {wanted!r} of the profile: torch {torch.__version__} sees none; {mend}")
    if device.type not in ("cpu", "cuda", "mps"):
        try:
            torch.zeros(1, device=device).item()
        except (RuntimeError, AssertionError) as error:  # torch knows names of devices that it cannot use
            raise UsageError(
                f"device = {wanted!r} of the profile cannot be used: {first_line(error)}; {mend}"
            ) from None
    return wanted

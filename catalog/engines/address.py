"""Where a served model is asked: the endpoint that a profile names, and a proxy that stands before it."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from evicat.schemas.errors import UsageError


def check_endpoint(section: str, endpoint: str) -> None:
    """Make sure that requests can be sent to ``endpoint``; ``section`` of the profile names it.

    Raises:
        UsageError: they cannot; says what to write.
    """
    if not endpoint:
        raise UsageError(f'{section}: write endpoint = "http://HOST:PORT/v1"')
    if "@" in endpoint:
        raise UsageError(f"{section}: no key in the endpoint; put it in OPENAI_API_KEY")
    if not endpoint.casefold().startswith(("http://", "https://")):
        raise UsageError(f"{section}: endpoint must begin with http, got {endpoint!r}")
    parts = _parts(endpoint)
    if parts is None or not parts.hostname or not endpoint.isprintable() or " " in endpoint:
        raise UsageError(f"{section}: endpoint must be like http://HOST:PORT/v1, got {endpoint!r}")
    if parts.query or parts.fragment or parts.path.rstrip("/").endswith("/completions"):
        raise UsageError(
            f"{section}: endpoint is what comes before /chat/completions, often with /v1 at its end, "
            f"got {endpoint!r}"
        )


def _parts(endpoint: str) -> SplitResult | None:
    try:
        parts = urlsplit(endpoint)
        _ = parts.port  # read here, it is checked
    except ValueError:
        return None
    return parts


def proxy_note(endpoint: str) -> str:
    """What to think of where requests go through a proxy; empty: they do not."""
    parts = urlsplit(endpoint)
    host, proxies = parts.hostname or "", getproxies()
    names = [name for name in (parts.scheme, "all") if name in proxies]
    if not names or proxy_bypass(host):
        return ""
    return f"; it was asked through the proxy of {names[0].upper()}_PROXY: NO_PROXY={host} leaves that out"

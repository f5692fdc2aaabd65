"""Index as another process: argv is recipe, profile, catalog, window to stop before, paths.

Tells of every call of a describer, one line each. Before the call of the given number it says ``waiting`` and
goes on when it is given a line, so that a test can do something, or kill it, at exactly that point.
"""

from __future__ import annotations

import sys


def main() -> None:
    from evicat.catalog.describers.digest import Digest
    from evicat.catalog.describers.sight import Sight
    from evicat.flows.ingest import ingest
    from evicat.storage import store

    store.COMMIT_SECONDS = 3600  # what is staged stays so until the end, however slow the machine
    recipe, profile, catalog, stop_at, *paths = sys.argv[1:]
    calls = []

    def patched(real):
        def describe(self, window):
            calls.append(window)
            if len(calls) == int(stop_at):
                print("waiting", flush=True)
                sys.stdin.readline()
            print(self.component, window.span.start_us // 1_000_000, flush=True)
            return real(self, window)

        return describe

    for kind in (Sight, Digest):
        kind.describe = patched(kind.describe)
    ingest(paths, catalog, recipe, profile or None)


if __name__ == "__main__":
    main()

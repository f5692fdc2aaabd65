"""The tour of `make demo`: index the sample clips (or your film), search what was written, look at it.

Exits 1 where a search does not lead to the clip and time that it should.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import samples


@dataclass(frozen=True)
class Tour:
    """A search, and where its first hit must lead: the span must cover ``at_s``."""

    what: str
    query: str
    video: str
    at_s: float
    kind: str | None = None


TOURS = (
    Tour("what somebody says", "Diane in New Jersey", "interview.mp4", 18.5, kind="speech"),
    Tour("what is written on the screen", "thanks for watching", "card.mp4", 3.5),
    Tour("what is seen", "a dark picture, almost all black, some blue", "globe.mp4", 5.0),
)


def evicat(*arguments: str, quiet: bool = False) -> str:
    """Run the command line; what it prints is shown, or given back where ``quiet``."""
    if not quiet:
        print(f"\n$ evicat {shlex.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "evicat.flows.cli", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE if quiet else None, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"evicat {arguments[0]} ended with exit code {done.returncode}")
    return done.stdout or ""


def tour(catalog: str) -> bool:
    """Make the three searches; whether each first hit is the right clip and time."""
    is_right = True
    for each in TOURS:
        filters = ["--kind", each.kind] if each.kind else []
        arguments = ["search", each.query, "--catalog", catalog, *filters, "--limit", "2"]
        print(f"\nFind {each.what}:", flush=True)
        evicat(*arguments)
        hit = json.loads(evicat(*arguments, "--json", quiet=True).splitlines()[0])
        if hit["video"] != each.video or not hit["start_s"] <= each.at_s < hit["end_s"]:
            print(f"  wrong: expected {each.video} at {each.at_s} s", flush=True)
            is_right = False
    return is_right


def show_report(catalog: str, video: str) -> None:
    """Write the page of a video beside the catalog; the command says where it lies."""
    print("\nLook at it:", flush=True)
    evicat("report", video, "-o", f"{catalog}-{Path(video).stem}.html", "--catalog", catalog)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", required=True, help="where the catalog is made")
    parser.add_argument("--samples", required=True, type=Path, help="where the sample clips are put")
    parser.add_argument("--video", help="your own film, in place of the sample clips")
    options = parser.parse_args()
    if options.video:
        evicat("index", options.video, "--catalog", options.catalog)
        evicat("show", Path(options.video).name, "--catalog", options.catalog)
        show_report(options.catalog, Path(options.video).name)
        print(f'\nNow search it: evicat search "your words" --catalog {options.catalog}')
        return 0
    samples.write_samples(options.samples)
    evicat("index", f"{options.samples}/*.mp4", "--catalog", options.catalog)
    is_right = tour(options.catalog)
    evicat("show", "interview.mp4", "--catalog", options.catalog, "--between", "15:25")
    show_report(options.catalog, "interview.mp4")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

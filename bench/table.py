"""Puts what `bench/results.json` holds into docs/LOG.md, as its newest entry of the day."""

from __future__ import annotations

import json
from pathlib import Path

from sides import RESULTS

LOG = Path(__file__).parents[1] / "docs" / "LOG.md"
TITLE = "## {day}: all promises of speed, by `make bench`"


def entry(results: dict[str, dict[str, object]]) -> str:
    """The entry as Markdown."""
    last = max(results.values(), key=lambda each: str(each["when"]))
    machine, versions = last["machine"], last["versions"]
    lines = [
        TITLE.format(day=str(last["when"])[:10]),
        "",
        f"**Machine**: {json.dumps(machine)}; {json.dumps(versions)}.",
        "**How**: both sides in turns, the first run of each not counted; medians.",
        "",
        "| what | ours, s | other, s | ratio | bound | load |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, each in sorted(results.items()):
        cells = [each.get(key) for key in ("ours_s", "other_s")]
        ratio = each.get("ratio", each.get("over_s"))
        bound = each.get("bound", each.get("bound_s"))
        shown = [f"{cell:.2f}" if isinstance(cell, float) else "" for cell in [*cells, ratio]]
        lines.append(f"| {name} | {' | '.join(shown)} | {bound} | {each['load']:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    new = entry(json.loads(RESULTS.read_text()))
    head, *entries = LOG.read_text().split("\n## ")
    title = new.splitlines()[0].removeprefix("## ")
    kept = [each for each in entries if not each.startswith(title)]
    sections = [new.removeprefix("## ").rstrip(), *(each.rstrip() for each in kept)]
    LOG.write_text(head.rstrip() + "".join(f"\n\n## {each}" for each in sections) + "\n")
    print(new)


if __name__ == "__main__":
    main()

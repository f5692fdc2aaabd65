"""``evicat status --check``: whether the tables keep their promises, a line for each."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

from evicat.catalog.audit import Audit, audit
from evicat.catalog.proof import Case, Proof
from evicat.schemas.span import US, format_time
from evicat.storage.reader import Reader


def check(console: Console, reader: Reader, *, as_json: bool) -> bool:
    """Prove what the tables promise, print a line for each proof, and say whether all hold."""
    result = audit(reader)
    for proof in result.proofs:
        if as_json:
            print(json.dumps(_proof_facts(result, proof), ensure_ascii=False))
        else:
            _print_proof(console, result, proof)
    if not as_json:
        broken = sum(not proof.holds for proof in result.proofs)
        verdict = (
            f"[bold red]{broken} of {len(result.proofs)} proofs do not hold" if broken else "[green]All hold"
        )
        console.print(f"{verdict}[/], at head {result.head}.")
    return result.holds


def _print_proof(console: Console, result: Audit, proof: Proof) -> None:
    if proof.skipped:
        verdict, looked = "[yellow]unknown[/]", "not looked at"
    else:
        verdict = "[green]holds[/]  " if proof.holds else "[red]broken[/] "
        looked = f"{proof.looked} {proof.of}"
    console.print(f"{verdict} {proof.name}: {proof.promise} ({looked})", soft_wrap=True, highlight=False)
    for case in proof.cases:
        place = _place(result, case)
        text = f"{place}: {case.what}" if place else case.what
        console.print(f"    {escape(text)}", soft_wrap=True, highlight=False)
    if proof.broken > len(proof.cases):
        console.print(f"    and {proof.broken - len(proof.cases)} more")
    for note in proof.notes:
        console.print(f"    [dim]{escape(note)}[/]", soft_wrap=True, highlight=False)


def _place(result: Audit, case: Case) -> str:
    """Video, scale, window and unit of a case, as far as they are known."""
    video = result.video_names.get(case.asset_id, case.asset_id)
    span = ""
    if case.start_us is not None and case.end_us is not None:
        span = f"{format_time(case.start_us)}-{format_time(case.end_us)}"
    unit = f"(unit {case.unit_id})" if case.unit_id else ""
    return " ".join(filter(None, [video, case.scale, span, unit]))


def _proof_facts(result: Audit, proof: Proof) -> dict[str, Any]:
    cases = [
        {
            "video": result.video_names.get(case.asset_id),
            "asset_id": case.asset_id or None,
            "unit_id": case.unit_id or None,
            "scale": case.scale or None,
            "start_s": None if case.start_us is None else case.start_us / US,
            "end_s": None if case.end_us is None else case.end_us / US,
            "what": case.what,
        }
        for case in proof.cases
    ]
    return {
        "proof": proof.name,
        "promise": proof.promise,
        "holds": None if proof.skipped else proof.holds,
        "looked": proof.looked,
        "broken": proof.broken,
        "cases": cases,
        "notes": proof.notes,
        "head": result.head,
    }

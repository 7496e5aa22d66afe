"""`rknpu verify`: what is to be said of an archive."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_rknpu.report.bundle import Bundle, problems_of, read_bundle, read_must_pass, results_of


@dataclass(frozen=True)
class Verified:
    """``problems`` is empty where the archive can be taken at its word. ``boards`` are (name, evidence)."""

    run_id: str
    boards: tuple[tuple[str, str], ...]
    must_pass: tuple[str, ...]
    problems: tuple[str, ...]


def verified(path: Path, must_pass: Path | None) -> Verified:
    """Check the archive at ``path``; ``must_pass`` names another list than its own.

    Raises ConfigurationError for what is no archive of ours, or holds no run.
    """
    bundle = read_bundle(path)
    if must_pass is not None:
        manifest = {**bundle.manifest, "must_pass": list(read_must_pass(must_pass))}
        bundle = replace(bundle, manifest=manifest)
    run = results_of(bundle).run
    boards = tuple((board.name, board.evidence) for board in run.boards)
    return Verified(run.run_id, boards, _must_pass(bundle), tuple(problems_of(bundle)))


def _must_pass(bundle: Bundle) -> tuple[str, ...]:
    listed = bundle.manifest.get("must_pass")
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def verdict_text(found: Verified) -> str:
    """For people. What is no hardware is said to be none."""
    boards = ", ".join(f"{name} ({evidence})" for name, evidence in found.boards) or "no board"
    lines = [f"run {found.run_id} on {boards}"]
    if found.problems:
        return "\n".join([*lines, *(f"  {problem}" for problem in found.problems), "NOT GOOD"])
    what = (
        f"{len(found.must_pass)} requirements that must pass do" if found.must_pass else "nothing had to pass"
    )
    software = [name for name, evidence in found.boards if evidence != "hardware"]
    if software:
        lines.append(f"software, which says nothing about silicon: {', '.join(software)}")
    return "\n".join([*lines, f"whole and consistent; {what}"])


def verdict_json(found: Verified) -> str:
    """For scripts."""
    table = {
        "run_id": found.run_id,
        "boards": [{"name": name, "evidence": evidence} for name, evidence in found.boards],
        "must_pass": list(found.must_pass),
        "problems": list(found.problems),
    }
    return json.dumps(table, indent=2)

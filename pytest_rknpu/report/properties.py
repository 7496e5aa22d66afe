"""What results say of themselves in few words, wherever there is no room for all of results.jsonl."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import Outcome

# How people call the versions that a verdict holds for, and their keys in a result.
MAIN_VERSIONS: Mapping[str, str] = {
    "BSP": "bsp",
    "kernel": "kernel",
    "driver": "driver",
    "runtime": "runtime",
    "toolkit": "toolkit",
    "model compiler": "model_compiler",
    "clocks": "clocks",
}


def properties_of(result: Result, again: str | None = None) -> list[tuple[str, str]]:
    """What every JUnit test case says beyond pass and fail; empty where there is nothing to say.

    ``again`` is the command that runs the test again, where one does.
    """
    return [
        ("requirement", ", ".join(result.requirement)),
        ("outcome", str(result.outcome)),
        *_original(result),
        ("evidence", result.evidence or ""),
        ("board", result.board or ""),
        *([("ran_on", result.ran_on)] if result.ran_on else []),
        ("soc", result.soc or ""),
        ("versions", versions_in_brief(result.versions)),
        ("seed", str(result.seed)),
        *([("again", again)] if again else []),
    ]


def _original(result: Result) -> list[tuple[str, str]]:
    """What a waived test ended as, and what covers it. A deviation that a suite itself knows is a failure."""
    if result.outcome is not Outcome.WAIVED:
        return []
    by = result.waived_by
    if by is None:
        return [("original_outcome", str(Outcome.FAIL)), ("waiver", "known to the suite")]
    words = f"{by.number}: {by.reason}{f' ({by.link})' if by.link else ''}, until {by.expires}"
    return [("original_outcome", by.original), ("waiver", words)]


def versions_in_brief(versions: Mapping[str, str]) -> str:
    """The main versions that were found, and the faults and latency model that were played.

    What is absent, with its reason, is in results.jsonl only; clocks have no room here.
    """
    titles = {key: title for title, key in MAIN_VERSIONS.items() if key != "clocks"}
    known = [f"{title} {versions[key]}" for key, title in titles.items() if _is_known(versions.get(key, ""))]
    played = {"FAULTS SEEDED": "faults", "LATENCY PLAYED": "latency_model"}
    known += [f"{title} {versions[key]}" for title, key in played.items() if key in versions]
    return "; ".join(known)


def _is_known(version: str) -> bool:
    return bool(version) and not version.startswith(("absent", "probe blocked"))

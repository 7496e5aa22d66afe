"""What every JUnit test case says of itself beyond pass and fail, in ours and in pytest's own file."""

from __future__ import annotations

from pytest_rknpu.report.results import Result


def properties_of(result: Result) -> list[tuple[str, str]]:
    """Names and values; empty where there is nothing to say."""
    versions = "; ".join(f"{name}={version}" for name, version in result.versions.items())
    return [
        ("requirement", ", ".join(result.requirement)),
        ("outcome", str(result.outcome)),
        ("evidence", result.evidence or ""),
        ("board", result.board or ""),
        ("soc", result.soc or ""),
        ("versions", versions),
        ("seed", str(result.seed)),
    ]

"""A comparison of two runs, for people and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from pytest_rknpu.measure import figures
from pytest_rknpu.measure.quantiles import quantile_name
from pytest_rknpu.report.compared_figures import FigureChange
from pytest_rknpu.report.compared_latency import LatencyChange, NotCompared
from pytest_rknpu.report.comparison import TURNS, OutcomeChange, RunComparison, VersionChange
from pytest_rknpu.report.node_ids import suite_test
from pytest_rknpu.report.results import Result

SCHEMA = "pytest-rknpu/comparison-1"


def comparison_text(found: RunComparison) -> str:
    """The comparison in lines: what regressed comes first within each section, and the verdict last."""
    lines = [
        f"A {found.a.run_id}  {found.a.started}  {found.a.command}",
        f"B {found.b.run_id}  {found.b.started}  {found.b.command}",
        f"{found.tests} tests in both",
        *(f"NOTE {note}" for note in found.notes),
        *_section("versions that differ", [_version(one) for one in found.versions]),
    ]
    for turn in TURNS:
        title = "other changes of outcome" if turn == "other" else turn
        lines += _section(title, [_outcome(one) for one in found.outcomes if one.turn == turn])
    lines += _section(_latency_title(found), list(_latency(found)))
    lines += _section("timed and not compared", [_not_compared(one) for one in found.not_compared])
    lines += _section(_worse_title(), [f"{one.worse}: {_figure(one)}" for one in found.figures if one.worse])
    lines += _section("other figures that differ", [_figure(one) for one in found.figures if not one.worse])
    return "\n".join([*lines, "", _verdict(found)])


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _latency_title(found: RunComparison) -> str:
    return (
        f"latency, B by A ({len(found.latency)} comparisons; changes within {found.floor:.1%} are none; the "
        f"chance of any false alarm is at most {found.alpha:.0%}, by Holm)"
    )


def _worse_title() -> str:
    return (
        f"memory and accuracy that got worse (tolerated: sizes {figures.SIZE_GROWTH:.0%} and "
        f"{figures.SIZE_LEAST} B, top-1 {figures.TOP1_DROP:.0%} of the samples, cosine "
        f"{figures.COSINE_DROP:g}, SQNR {figures.SQNR_DROP_DB:g} dB)"
    )


def _latency(found: RunComparison) -> Iterator[str]:
    ranks = {"slower": 0, "faster": 1, "unchanged": 2}
    for one in sorted(found.latency, key=lambda one: (ranks[one.direction], one.corrected)):
        change = one.change
        word = "no change shown" if one.direction == "unchanged" else one.direction.upper()
        yield (
            f"{word}: {_board(one.runs.result)} {one.runs.what} {quantile_name(change.quantile)}: "
            f"{change.before:.4g} -> {change.after:.4g} ms, {change.relative:+.1%} "
            f"({_percent(change.lower)} to {_percent(change.upper)}), p {one.corrected:.2g}"
            f" [{suite_test(one.runs.result.nodeid)}]"
        )


def _percent(relative: float) -> str:
    return f"{relative:+.1%}" if math.isfinite(relative) and relative > -1 else "unbounded"


def _board(result: Result) -> str:
    return f"{result.board} ({result.evidence})" if result.board else "no board"


def _outcome(one: OutcomeChange) -> str:
    after = one.after
    why = f": {after.message.splitlines()[0]}" if after.message else ""
    ids = ", ".join(after.requirement) or "-"
    return f"{ids} {_board(after)} {suite_test(after.nodeid)}: {one.before} -> {after.outcome}{why}"


def _figure(one: FigureChange) -> str:
    where = f"{', '.join(one.result.requirement)} {_board(one.result)} {suite_test(one.result.nodeid)}"
    return f"{where}: {one.name} {one.before:.10g} -> {one.after:.10g} {one.unit}".rstrip()


def _version(one: VersionChange) -> str:
    return f"{one.board} {one.name}: {one.before} -> {one.after}"


def _not_compared(one: NotCompared) -> str:
    return f"{_board(one.runs.result)} {one.runs.what}: {'; '.join(one.reasons)}"


def _verdict(found: RunComparison) -> str:
    worse = [one.worse for one in found.figures if one.worse]
    counts = (
        (sum(one.turn == "began to fail" for one in found.outcomes), "began to fail"),
        (sum(one.turn == "no longer shown" for one in found.outcomes), "no longer shown"),
        (sum(one.direction == "slower" for one in found.latency), "slower"),
        (worse.count("memory grew"), "larger"),
        (worse.count("accuracy dropped"), "less accurate"),
    )
    if found.regressed:
        return "REGRESSION: " + ", ".join(f"{number} {words}" for number, words in counts)
    return "; ".join(["no regression shown", *found.open_ends])


def comparison_json(found: RunComparison) -> str:
    """The same as JSON: bounds that are unbounded are null, times are in ms, changes relative."""
    table = {
        "schema": SCHEMA,
        "a": found.a.run_id,
        "b": found.b.run_id,
        "alpha": found.alpha,
        "noise_floor": found.floor,
        "correction": "holm",
        "tolerances": {
            "size_growth": figures.SIZE_GROWTH,
            "size_bytes": figures.SIZE_LEAST,
            "top1_drop": figures.TOP1_DROP,
            "cosine_drop": figures.COSINE_DROP,
            "sqnr_drop_db": figures.SQNR_DROP_DB,
        },
        "tests": found.tests,
        "regression": found.regressed,
        "open_ends": found.open_ends,
        "notes": list(found.notes),
        "versions": [vars(one) for one in found.versions],
        "outcomes": [
            {
                **_place(one.after),
                "turn": one.turn,
                "before": str(one.before),
                "after": str(one.after.outcome),
                "message": one.after.message,
            }
            for one in found.outcomes
        ],
        "latency": [_latency_table(one) for one in found.latency],
        "not_compared": [{**_runs(one), "reasons": list(one.reasons)} for one in found.not_compared],
        "figures": [_figure_table(one) for one in found.figures],
        "no_longer_run": [_place(one) for one in found.no_longer_run],
    }
    return json.dumps(table, indent=2, allow_nan=False)


def _figure_table(one: FigureChange) -> dict[str, Any]:
    return {
        **_place(one.result),
        "name": one.name,
        "before": _finite(one.before),
        "after": _finite(one.after),
        "unit": one.unit,
        "worse": one.worse,
    }


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _place(result: Result) -> dict[str, Any]:
    names = ("board", "soc", "evidence", "nodeid")
    return {"requirement": list(result.requirement), **{name: getattr(result, name) for name in names}}


def _runs(one: LatencyChange | NotCompared) -> dict[str, Any]:
    return {**_place(one.runs.result), "model": one.runs.model, "core_mask": one.runs.core_mask}


def _latency_table(one: LatencyChange) -> dict[str, Any]:
    change = one.change
    return {
        **_runs(one),
        "quantile": quantile_name(change.quantile),
        "before_ms": change.before,
        "after_ms": change.after,
        "change": change.relative,
        "change_at_least": change.lower if math.isfinite(change.lower) and change.lower > -1 else None,
        "change_at_most": change.upper if math.isfinite(change.upper) else None,
        "p": change.p_value,
        "p_corrected": one.corrected,
        "direction": one.direction,
    }

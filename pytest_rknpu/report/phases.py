"""Between pytest and a verdict: what each phase of a test comes to, and what its report carries to others.

A report gets the attribute ``rknpu``, plain data that xdist sends along: the phase's outcome and, in the last
phase, the whole result. It also gets user properties, from which pytest's own JUnit writer profits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_rknpu.errors import RknpuError
from pytest_rknpu.farm.collecting import Ours
from pytest_rknpu.farm.run import RUN, Run
from pytest_rknpu.farm.slots import Slots
from pytest_rknpu.report.not_tried import was_tried
from pytest_rknpu.report.properties import properties_of
from pytest_rknpu.report.replay import replay_command
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import (
    ItemRecord,
    Outcome,
    Phase,
    Verdict,
    conclude,
    message_of,
    outcome_of,
    sendable,
)

if TYPE_CHECKING:
    from _pytest._code.code import Traceback  # pytest names the type in public signatures, yet not in public

_PACKAGE = Path(__file__).resolve().parents[1]
_SUITES = _PACKAGE / "_suites"  # in a wheel

# pytest's own outcome for each of ours; what is not here failed.
_PYTEST_OUTCOMES: Mapping[Outcome, Literal["passed", "skipped"]] = {
    Outcome.PASS: "passed",
    Outcome.SKIP: "skipped",
    Outcome.WAIVED: "skipped",
}


def judge(
    item: pytest.Item, ours: Ours, call: pytest.CallInfo[None], report: pytest.TestReport, slots: Slots
) -> None:
    """Add a phase and make the report say what it came to."""
    phase = _waived(item.config.stash[RUN], ours, _phase(call, report), slots)
    ours.phases.append(phase)
    ours.tried = ours.tried and was_tried(call.excinfo)
    _blame(ours, phase, slots)
    result = _result(item, ours, conclude(ours.record, ours.phases), slots)
    _make_report_say(item, report, phase, call.excinfo)
    last = result.plain() if report.when == "teardown" else None
    tried = was_tried(call.excinfo)
    report.rknpu = {"outcome": str(phase.outcome), "result": last, "tried": tried}  # type: ignore[attr-defined]
    again = replay_command(item.config.stash[RUN], item.nodeid, item.config)
    report.user_properties = [*item.user_properties, *properties_of(result, again)]


def _phase(call: pytest.CallInfo[None], report: pytest.TestReport) -> Phase:
    error = call.excinfo.value if call.excinfo else None
    if error is None and report.failed:  # another plugin's doing, such as xfail(strict) that passed
        message = report.longreprtext or "another plugin failed it"
        return Phase(str(report.when), Outcome.FAIL, message, call.duration)
    if call.excinfo is not None and type(error) is AssertionError and _is_our_own(call.excinfo):
        return Phase(str(report.when), Outcome.HARNESS, message_of(error), call.duration)
    return Phase(str(report.when), outcome_of(error), message_of(error), call.duration)


def _waived(run: Run, ours: Ours, phase: Phase, slots: Slots) -> Phase:
    """The phase as it counts, by the waivers of this run."""
    board, file = ours.board, run.waivers
    if board is None or file is None:
        return phase
    from pytest_rknpu.waivers.applying import waive

    versions = {**slots.of(board.name).versions, **ours.record.versions}
    today = datetime.now(timezone.utc).date()
    return waive(file.waivers, phase, ours.record, board.name, board.soc, versions, today)


def _is_our_own(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether an assertion of this package, or of the link below it, was wrong: that is no word on a board.

    What this package has to say about one, it says by ConformanceFailure.
    """
    raised = Path(excinfo.traceback[-1].path)
    return raised.parent.name == "execnet" or (_PACKAGE in raised.parents and _SUITES not in raised.parents)


def _blame(ours: Ours, phase: Phase, slots: Slots) -> None:
    if ours.board is not None and phase.outcome is Outcome.INFRA:
        slots.of(ours.board.name).blame(phase.message)


def _result(item: pytest.Item, ours: Ours, verdict: Verdict, slots: Slots) -> Result:
    record, board = ours.record, ours.board
    if board is not None:
        record.versions.update(slots.of(board.name).versions)
    return Result(
        requirement=verdict.requirements,
        nodeid=item.nodeid,
        board=board.name if board else None,
        soc=board.soc if board else None,
        evidence=board.evidence if board else None,
        outcome=verdict.outcome,
        versions={sendable(key): sendable(value) for key, value in record.versions.items()},
        seed=record.seed,
        measurements=tuple(record.measurements),
        notes=(*(sendable(note) for note in record.notes), *_log_of(record, verdict)),
        message=sendable(verdict.message),
        duration_s=round(verdict.duration_s, 6),
        samples=tuple(record.samples),
        waived_by=record.waived_by,
        tried=ours.tried,
        ran_on=slots.of(board.name).ran_on if board else None,
    )


def _log_of(record: ItemRecord, verdict: Verdict) -> Iterator[str]:
    """What the runtime logged during a test that is not green; of others nobody asks."""
    if record.runtime_log and (verdict.outcome.red or verdict.outcome is Outcome.WAIVED):
        yield f"the runtime's log ends with:\n{record.runtime_log}"


def _make_report_say(
    item: pytest.Item,
    report: pytest.TestReport,
    phase: Phase,
    excinfo: pytest.ExceptionInfo[BaseException] | None,
) -> None:
    """pytest's own outcome follows ours: an xfail mark, for one, does not turn a failure into a skip."""
    if hasattr(report, "wasxfail"):
        del report.wasxfail
    report.outcome = _PYTEST_OUTCOMES.get(phase.outcome, "failed")
    if report.failed and isinstance(report.longrepr, tuple):  # it was a skip, and had nothing to show
        report.longrepr = phase.message
    if report.skipped and not isinstance(
        report.longrepr, tuple
    ):  # waived; pytest folds skips by such triples
        report.longrepr = (str(item.path), (item.location[1] or 0) + 1, f"{phase.outcome}: {phase.message}")
    if report.failed and excinfo is not None and _wants_short(excinfo.value, item.config):
        report.longrepr = _shortened(excinfo, item.path)


def _wants_short(error: BaseException, config: pytest.Config) -> bool:
    """Our own errors say what is wrong; their way through this package is of no use but to its developers."""
    style = config.getoption("tbstyle", "auto")  # no such option with -p no:terminal
    return isinstance(error, RknpuError) and style in ("auto", "short") and config.get_verbosity() < 2


def _shortened(excinfo: pytest.ExceptionInfo[BaseException], path: Path) -> Any:
    """The innermost line of the test's own file, if it has any part in this, and the message."""

    def own_line(excinfo: pytest.ExceptionInfo[BaseException]) -> Traceback:
        return _in_file(excinfo, path)[-1:]

    if _in_file(excinfo, path):
        return excinfo.getrepr(style="short", tbfilter=own_line, chain=False)
    return excinfo.getrepr(style="value", chain=False)


def _in_file(excinfo: pytest.ExceptionInfo[BaseException], path: Path) -> Traceback:
    return excinfo.traceback.filter(lambda entry: str(entry.frame.code.path) == str(path))

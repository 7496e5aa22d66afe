"""The controller's side of a run: gathers what all workers report, writes it down, sums it up."""

from __future__ import annotations

import platform
import socket
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pytest_rknpu import __version__
from pytest_rknpu.farm.collecting import OURS
from pytest_rknpu.farm.durations import Measured, expected_from
from pytest_rknpu.farm.manifest import NOTHING, Manifest, Planned
from pytest_rknpu.farm.run import Run, derive_seed
from pytest_rknpu.report.bundle import BOARDS
from pytest_rknpu.report.not_tried import STATUS, is_not_tried, not_run_lines, without_calls
from pytest_rknpu.report.pooled import PoolVersions
from pytest_rknpu.report.public_boards import write_public_boards
from pytest_rknpu.report.replay import replay_command
from pytest_rknpu.report.results import (
    FILE_NAME,
    SCHEMA,
    PlannedBoard,
    Result,
    Results,
    ResultsWriter,
    RunRecord,
    names_reported,
    result_from,
)
from pytest_rknpu.report.terminal import status_of, write_summary
from pytest_rknpu.verdict import Outcome

_PHASES = frozenset({"setup", "call", "teardown"})


class Collector:
    """Registered as a plugin in the one process that reports. Without a report folder it only remembers."""

    def __init__(self, run: Run, config: pytest.Config) -> None:
        self.results: list[Result] = []
        self.manifest: Manifest = NOTHING
        self.header_shown = False
        self._run = run
        self._config = config
        self._record: RunRecord | None = None
        self._writer: ResultsWriter | None = None
        self._pool_versions = PoolVersions()
        self._left: list[str] = []
        self._incomplete: set[str] = set()
        self._collected: dict[str, str | None] = {}
        # Then no test function is called, and there is nothing to report.
        self._idle = without_calls(config)

    def begin(self) -> None:
        """Open the report, before any board is touched.

        Raises UsageError where it cannot be written, ConfigurationError where another run writes to it.
        """
        folder = self._run.report
        if folder is None or self._idle:
            return
        self._record = _record_of(self._run)
        try:
            (folder / "junit").mkdir(parents=True, exist_ok=True)
            older = names_reported(folder / FILE_NAME)
            self._writer = ResultsWriter(folder / FILE_NAME, self._record)
            write_public_boards(folder / BOARDS, self._run.boards if self._run.boards_file else ())
            for name in older:  # of boards that this run may not have; other files there are not ours
                (folder / "junit" / f"{name}.xml").unlink(missing_ok=True)
        except OSError as error:
            raise pytest.UsageError(
                f"--rknpu-report {folder}: {error.strerror or error}; give a folder that can be written to"
            ) from None

    def board_of(self, nodeid: str) -> str | None:
        """The board that a collected test is about, as far as workers or its name tell."""
        planned = self.manifest.tests.get(nodeid)
        if planned is not None:
            return planned.board
        if not self._run.asked:
            return None
        from pytest_rknpu.farm.schedule import board_in

        return board_in(nodeid, [board.name for board in self._run.boards])

    def planned(self) -> Mapping[str, str | None]:
        """The board of each test that is to get a result, by node id; None where it is about none."""
        told = {nodeid: planned.board for nodeid, planned in self.manifest.tests.items()}
        return told or self._collected

    def station_of(self, nodeid: str) -> str | None:
        """What is leased for a collected test: boards of one machine have that in common."""
        board = self.board_of(nodeid)
        return self._run.station(board) if board else None

    def seconds_of(self) -> Callable[[str], float]:
        """How long tests are expected to take, by node id.

        Raises ConfigurationError where the run that was named for that cannot be read.
        """
        if self._run.durations is None:
            return expected_from([], self.board_of)
        from pytest_rknpu.report.timed import read_run

        tests = read_run(self._run.durations).tests
        measured = (Measured(test.nodeid, test.board, test.duration_s) for test in tests if test.tried)
        return expected_from(measured, self.board_of)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember what is to be run; with xdist nothing is collected here (`manifest`)."""
        ours = {item.nodeid: item.stash[OURS] for item in session.items if OURS in item.stash}
        self._collected = {nodeid: own.board.name if own.board else None for nodeid, own in ours.items()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test ended, here or in a worker; or a worker died in one."""
        carried = getattr(report, "rknpu", None)
        if carried is not None and carried["result"] is not None:
            self._add(result_from(carried["result"]))
        elif report.when not in _PHASES:
            self._add_crashed(report)

    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
        """Words for the outcomes that pytest does not know."""
        carried = getattr(report, "rknpu", None)
        if is_not_tried(report):
            return STATUS
        return status_of(carried["outcome"]) if carried is not None else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config) -> None:
        """xdist: reports of workers are counted here, where no test is collected."""
        from pytest_rknpu.report.loss_hooks import Counting

        config.pluginmanager.register(Counting(config), "rknpu-counting")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the projections, and see to it that a run which showed nothing is not green."""
        if self.results:
            self._settle_waivers(session)
        if self._writer is not None:
            self._guarded(FILE_NAME, self._writer.close)
        if self._run.report is not None and self._record is not None:
            self._guarded("junit", self._write_junit)
            self._guarded("report.html", self._write_page)
        judged = [result for result in self.results if result.requirement]
        if judged and all(result.outcome is Outcome.SKIP for result in judged):
            self._left.append(
                f"not a pass: all {len(judged)} tests of requirements were skipped; this run showed nothing"
            )
            _redden(session)
        red = [result for result in self.results if result.outcome.red]
        if red and session.exitstatus == pytest.ExitCode.OK:
            self._left.append(
                f"not a pass: {len(red)} above did not pass, and running a test again does not undo that"
            )
        if red or self._incomplete:
            _redden(session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The last word, where there is anything to say."""
        if not self.results:
            return
        self._left += self._pool_versions.lines()
        self._left += not_run_lines(self.planned(), self.results)
        if self._writer is not None:
            self._left.append(f"report: {self._writer.path.parent}")
        write_summary(terminalreporter, self._run, self.results, self._left)

    def _settle_waivers(self, session: pytest.Session) -> None:
        """Report waivers that have had their time; a board that passes in spite of one is not green."""
        from pytest_rknpu.report.waived import narrowed, run_standings, summary_lines, unexpected_passes

        file = self._run.waivers
        found = run_standings(self._run, self.results)
        if file is None or not found:
            return
        if not narrowed(session):
            for result in list(unexpected_passes(file, found, self.results)):
                self._add(result)
        self._left += summary_lines(file, found)

    def _add(self, result: Result) -> None:
        if self._idle:
            return
        result = self._pool_versions.marked(result)
        self.results.append(result)
        writer = self._writer
        if writer is not None:
            self._guarded(FILE_NAME, lambda: writer.write(result))

    def _guarded(self, what: str, write: Callable[[], None]) -> None:
        """A disk that fills up in the middle of a run must not end it; nor may the run look complete.

        So with a result that cannot be written, which would be this package's own fault.
        """
        try:
            write()
        except (OSError, TypeError, ValueError) as error:
            if what not in self._incomplete:
                self._incomplete.add(what)
                self._left.append(f"INCOMPLETE REPORT: {what}: {getattr(error, 'strerror', None) or error}")

    def _write_junit(self) -> None:
        from pytest_rknpu.report.junit import FOLDER_NAME, write_junit

        assert self._run.report is not None
        assert self._record is not None
        tests = self.planned()

        def again(result: Result) -> str | None:
            known = result.nodeid in tests  # others are about a waiver
            return replay_command(self._run, result.nodeid, self._config) if known else None

        write_junit(self._run.report / FOLDER_NAME, self._record, self.results, again)

    def _write_page(self) -> None:
        from pytest_rknpu.report.page import write_page

        assert self._run.report is not None
        assert self._record is not None
        write_page(self._run.report, Results(self._record, tuple(self.results), torn=False))

    def _add_crashed(self, report: pytest.TestReport) -> None:
        """The worker, a process of the host, died: nothing is known, and the board is not to blame."""
        board_name = self.board_of(report.nodeid)
        planned = self.manifest.tests.get(report.nodeid)
        if planned is None and board_name is None:
            return
        seed = derive_seed(self._run.origin.seed, report.nodeid)
        planned = planned or Planned(board_name, (), seed)
        board = self._run.board(board_name) if board_name else None
        self._add(
            Result(
                requirement=planned.requirement,
                nodeid=report.nodeid,
                board=board.name if board else None,
                soc=board.soc if board else None,
                evidence=board.evidence if board else None,
                outcome=Outcome.HARNESS,
                versions={},
                seed=planned.seed,
                measurements=(),
                notes=(),
                message=str(report.longrepr),
                duration_s=0.0,
            )
        )


def _redden(session: pytest.Session) -> None:
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _record_of(run: Run) -> RunRecord:
    boards = run.boards if run.boards_file is not None else ()
    return RunRecord(
        schema=SCHEMA,
        run_id=run.origin.run_id,
        plugin=__version__,
        git=_git_state(),
        command=run.origin.command,
        seed=run.origin.seed,
        effort=str(run.effort),
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        host=socket.gethostname(),
        python=platform.python_version(),
        pytest=pytest.__version__,
        boards=tuple(PlannedBoard(board.name, board.soc, board.evidence) for board in boards),
        waivers=run.waivers.digest if run.waivers is not None else None,
    )


def _git_state() -> str | None:
    """The commit of this package's checkout, with ``-dirty`` where it was changed; None where it is none."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None

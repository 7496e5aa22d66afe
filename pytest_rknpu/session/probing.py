"""One look at a board, for `rknpu probe`: what it is and runs, and what is missing there, with the remedy.

Unlike a session it does not give up at the first thing that is missing: it goes as far as the board lets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import (
    BoardError,
    BoardLost,
    ConformanceFailure,
    ModelError,
    RknpuError,
    ToolkitError,
)
from pytest_rknpu.session.artifacts import artifact_for, compiler_of
from pytest_rknpu.session.board_session import BoardSession, reach, require_as_declared
from pytest_rknpu.session.compatibility import combination_of, findings, header_of
from pytest_rknpu.session.connected import connect_through_toolkit
from pytest_rknpu.session.missing import Missing, in_order, missing_on
from pytest_rknpu.session.simulator import SimulatorSession
from pytest_rknpu.session.versions import SMALLEST_MODEL, identify, is_value, known_from_facts

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.session.link import Link, Message

_START_SECONDS = 60.0


@dataclass(frozen=True)
class Probed:
    """What was found. ``facts`` and ``functions`` are empty where no agent ran; ``agent`` is then None.

    ``facts`` are the agent's (pytest_rknpu/agent/probe.py), ``versions`` what results record (VER-01).
    """

    board: Board
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    agent: Mapping[str, Any] | None = None
    missing: tuple[Missing, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the suites can run there: nothing that is needed is missing."""
        return not any(problem.needed for problem in self.missing)


def probe_board(board: Board, *, seed: int = 0) -> Probed:
    """Look at ``board``, of whatever kind. Raises RknpuError only for what is no matter of the board's."""
    if board.runtime in ("simulator", "connected"):
        return _by_the_toolkit(board)
    with ExitStack() as resources:
        try:
            link, keys = reach(board, seed=seed, resources=resources)
        except BoardError as error:
            return unreachable(board, error)
        resources.callback(link.close)
        return _by_the_agent(board, link, keys)


def unreachable(board: Board, error: Exception) -> Probed:
    """What is to be said of a board that nobody could look at."""
    if board.transport in (None, "local"):
        remedy = "see that this Python can start another one"
    else:
        remedy = (
            "see that the board is on and can be reached, that your key opens it, and that Python 3.8 or "
            "newer is there (`python` in boards.toml); the command above shows more"
        )
    return Probed(board, missing=(Missing("connection", str(error), remedy, needed=True),))


def _by_the_agent(board: Board, link: Link, keys: Message) -> Probed:
    """The library is opened first, as a session does; if that fails the board is looked at all the same."""
    found: list[Missing] = []
    library, root = keys["library"], keys["root"]
    try:
        start = link.request({"request": "start", **keys}, _START_SECONDS)
        looked = link.request({"request": "probe", "library": library, "root": root}, _START_SECONDS)
    except BoardLost as error:
        return _by_another_agent(board, keys, error)
    facts = looked["facts"] if looked["ok"] else {}
    if not looked["ok"]:
        found.append(_failed("probe", looked["error"]["message"]))
    found += _not_as_declared(board, facts)
    emulated = board.runtime == "emulator"
    found += missing_on(board.chip, facts, emulated=emulated, pins_clocks=board.pin)
    if not start["ok"]:
        if not any(problem.what == "runtime-library" for problem in found):
            found.append(_failed("runtime-library", start["error"]["message"]))
        versions = known_from_facts(facts) | compiler_of(board)
        return Probed(board, versions, facts, missing=in_order(found))
    session = BoardSession(board, link, start, facts)
    found += _asked(session)
    return Probed(
        board,
        session.versions or known_from_facts(facts) | compiler_of(board),
        facts,
        tuple(sorted(session.functions)),
        {**session.agent, "version": start["agent"]},
        in_order(found),
    )


def _not_as_declared(board: Board, facts: Mapping[str, Any]) -> list[Missing]:
    """Whether what answers is hardware has to be what boards.toml says."""
    try:
        require_as_declared(board, facts)
    except BoardError as error:
        return [Missing("evidence", str(error), "let `stand_in` in boards.toml say what it is", needed=True)]
    return []


def _by_another_agent(board: Board, keys: Message, lost: BoardLost) -> Probed:
    """The library took the agent along when it was opened: an agent that leaves it alone says the rest."""
    with ExitStack() as resources:
        try:
            link, _ = reach(board, seed=0, resources=resources)
            resources.callback(link.close)
            message = {"request": "probe", "library": keys["library"], "root": keys["root"]}
            looked = link.request(message, _START_SECONDS)
        except BoardError as error:
            return unreachable(board, error)
    facts = looked["facts"] if looked["ok"] else {}
    crashed = Missing(
        "runtime-library",
        f"opening it ended the agent: {lost}",
        "install the runtime anew, from the SDK's rknpu2/runtime, for this system's C library",
        needed=True,
    )
    found = missing_on(board.chip, facts, emulated=board.runtime == "emulator", pins_clocks=board.pin)
    versions = known_from_facts(facts) | compiler_of(board)
    return Probed(board, versions, facts, missing=in_order([crashed, *found]))


def _failed(what: str, why: str) -> Missing:
    return Missing(what, why, "see the reason; `rknpu probe --json` has all that was found", needed=True)


def _asked(session: BoardSession) -> list[Missing]:
    """Let the runtime load a small model and say its versions; what is known of the combination (VER-03)."""
    try:
        identify(session)
    except BoardLost as error:
        return [
            Missing(
                "runtime",
                f"loading a small model ended the agent: {error}",
                "the runtime crashed in rknn_init; see the kernel log, and whether it suits the driver",
                needed=True,
            )
        ]
    except RknpuError as error:
        return [_failed("runtime", str(error))]
    found = _combination(session)
    if not is_value(session.versions["runtime"]) and not any(problem.needed for problem in found):
        found.append(
            Missing(
                "runtime",
                f"it does not load a small model: {session.versions['runtime']}",
                "mend what the reason says, then probe again",
                needed=True,
            )
        )
    return found


def _combination(session: BoardSession) -> list[Missing]:
    try:
        header = header_of(artifact_for(session.board, SMALLEST_MODEL))
    except (ModelError, ToolkitError, ConformanceFailure):
        header = None
    told = findings(combination_of(session.soc.name, session.soc.runtime, session.versions, header))
    remedy = "update what the reason names"
    return [
        *(Missing("combination", words, remedy, needed=True) for words in told.failing),
        *(Missing("combination", words, remedy, needed=False) for words in told.doubtful),
    ]


def _by_the_toolkit(board: Board) -> Probed:
    from pytest_rknpu.toolchain import toolkit_status

    status = toolkit_status()
    if status.version is None:
        remedy = str(status.install_command)
        return Probed(board, missing=(Missing("toolkit", str(status.reason), remedy, needed=True),))
    if board.runtime == "simulator":
        return Probed(board, SimulatorSession(board, status.version).versions)
    try:
        session = connect_through_toolkit(board, status.version)
    except (BoardError, ToolkitError) as error:
        remedy = "see that `adb devices` lists the board, and that rknn_server runs there"
        return Probed(board, missing=(Missing("connection", str(error), remedy, needed=True),))
    return Probed(board, session.versions)

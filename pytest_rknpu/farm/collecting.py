"""Collection: tests that use a board become one item per selected board; markers are checked.

Nothing here needs a board or the toolkit. A test is *ours* if it uses the fixture `board` of this package (as
`npu` does), or if it names a requirement in a run that has boards; other tests are left alone.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.farm.model_names import lacks_models
from pytest_rknpu.farm.own_fixtures import defined_here, is_ours
from pytest_rknpu.farm.run import Run, derive_seed

if TYPE_CHECKING:
    from pytest_rknpu.farm.manifest import Manifest
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.session import Npu
    from pytest_rknpu.verdict import ItemRecord, Phase

# Fixture -> (runtimes of the boards that can give it, what the others lack).
_RUNTIMES_FOR: Mapping[str, tuple[frozenset[str], str]] = {
    "npu": (frozenset({"emulator", "librknnrt"}), "has a C runtime"),
    "connected": (frozenset({"connected"}), 'has runtime = "connected"'),
    "build": (frozenset({"simulator", "librknnrt", "connected"}), "runs what RKNN-Toolkit2 compiles"),
}

_RUNTIMES = ("emulator", "simulator", "librknnrt", "connected")

# The parameter of a test that was to run on boards, and cannot; its id in the node id.
_NO_BOARD = "no-board"


@dataclass
class Ours:
    """What this package knows of one collected test. ``board`` is None where it is about none."""

    board: Board | None
    needs: tuple[str, ...]
    record: ItemRecord
    npu: Npu | None = None
    phases: list[Phase] = field(default_factory=list)
    attempts: int = 0
    tried: bool = True

    def begin(self) -> None:
        """Before each time that the test runs: another plugin may want it more than once."""
        self.attempts += 1
        self.tried = True
        self.phases.clear()
        if self.attempts > 1:
            self.record = self.record.anew()
            self.record.note(f"attempt {self.attempts}: another plugin had the test run again")


OURS = pytest.StashKey[Ours]()
"""Where `pytest.Item.stash` holds it; other tests have no such entry."""


class Problems:
    """Why the boards of a run cannot be used: kept during collection, where an error would hit one file."""

    def __init__(self) -> None:
        self.first: str | None = None

    def boards(self, run: Run) -> tuple[Board, ...] | None:
        """The boards of the run, or None if they cannot be used."""
        if self.first is None:
            try:
                return run.boards
            except ConfigurationError as error:
                self.first = str(error)
        return None


PROBLEMS = pytest.StashKey[Problems]()
"""Where `pytest.Config.stash` holds them."""


def parametrise(metafunc: pytest.Metafunc, run: Run, problems: Problems) -> None:
    """One item per selected board, in the order of boards.toml; the board leads the node id's bracket.

    Tests that use `npu` get the boards with a C runtime only, those that use `connected` the connected ones.
    """
    if "board" not in metafunc.fixturenames or not is_ours(metafunc, "board"):
        return
    boards = problems.boards(run)
    if boards is None:
        metafunc.parametrize("board", [pytest.param(None, id=_NO_BOARD)], indirect=True, scope="session")
        return
    names: list[Any] = [board.name for board in boards]
    for runtimes, what in _kinds_of_board(metafunc):
        names = [board.name for board in boards if board.name in names and board.runtime in runtimes]
        names = names or [_nothing_to_run_on(boards, what)]
    if lacks_models(metafunc, run, problems):
        names = [pytest.param(None, id=_NO_BOARD)]  # the parameter of the model says why
    metafunc.parametrize("board", names, indirect=True, scope="session")


def _kinds_of_board(metafunc: pytest.Metafunc) -> Iterator[tuple[frozenset[str], str]]:
    """What the test's fixtures and its marks ``runtimes`` say of the boards that it is about."""
    for fixture, kinds in _RUNTIMES_FOR.items():
        if fixture in metafunc.fixturenames:
            yield kinds
    for mark in metafunc.definition.iter_markers("runtimes"):
        yield frozenset(mark.args), f"has runtime {' or '.join(mark.args)}"


def _nothing_to_run_on(boards: Iterable[Board], what: str) -> Any:
    listed = ", ".join(f"{board.name} ({board.runtime})" for board in boards)
    reason = f"no selected board {what}: {listed}"
    return pytest.param(None, id=_NO_BOARD, marks=pytest.mark.skip(reason=reason))


def adopt(items: Iterable[pytest.Item], run: Run) -> None:
    """Find the tests that are ours and check their markers.

    Raises ConfigurationError for an unknown word, and for two boards whose tests cannot be told apart.
    """
    boards: dict[str, str] = {}
    for item in items:
        on_board = _board_parameter(item)
        if on_board is not None or (run.configured and item.get_closest_marker("requirement")):
            item.stash[OURS] = _ours(item, run, on_board or None)
        if on_board and boards.setdefault(item.nodeid, on_board) != on_board:
            raise ConfigurationError(
                f"{item.nodeid}: is a test of board {boards[item.nodeid]} and one of board {on_board}, since "
                "one name begins with the other; rename one of these boards"
            )


def split_by_requirement(
    items: Iterable[pytest.Item], globs: Sequence[str]
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(kept, left out): a test is kept if one of its requirement ids matches one of ``globs``.

    Raises ConfigurationError for a glob that matches no requirement of the catalogue.
    """
    from pytest_rknpu.verdict import REQUIREMENTS, require_known

    for glob in globs:
        if not fnmatch.filter(REQUIREMENTS, glob.upper()):
            require_known([glob], "--requirement")  # names the nearest id
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        ids = [str(id) for id in _arguments(item, "requirement")]
        wanted = any(fnmatch.fnmatch(id, glob.upper()) for id in ids for glob in globs)
        (kept if wanted else left_out).append(item)
    return kept, left_out


def _board_parameter(item: pytest.Item) -> str | None:
    """The name of the item's board, "" for the placeholder of none, None where the item uses no board."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "board" not in callspec.params:
        return None
    definitions: Any = getattr(item, "_fixtureinfo").name2fixturedefs.get("board")  # noqa: B009  # private
    if not defined_here(definitions):
        return None
    return callspec.params["board"] or ""


def _ours(item: pytest.Item, run: Run, board: str | None) -> Ours:
    from pytest_rknpu.verdict import ItemRecord, require_known, require_known_needs

    record = ItemRecord(
        nodeid=item.nodeid,
        requirements=require_known(_arguments(item, "requirement"), item.nodeid),
        seed=derive_seed(run.origin.seed, item.nodeid),
        expects_runtime_errors=item.get_closest_marker("expects_runtime_errors") is not None,
    )
    needs = require_known_needs(_arguments(item, "needs"), item.nodeid)
    _require_known_runtimes(item)
    return Ours(_selected(item, run, board) if board else None, needs, record)


def _selected(item: pytest.Item, run: Run, name: str) -> Board | None:
    """The board of that name; None, and a skip that says so, where a test names one that was not selected."""
    for board in run.boards:
        if board.name == name:
            return board
    if name not in [board.name for board in run.file.boards]:
        raise ConfigurationError(f"{item.nodeid}: names board {name!r}, which is not in {run.file.path}")
    listed = ", ".join(board.name for board in run.boards)
    item.add_marker(pytest.mark.skip(reason=f"board {name} was not selected, but {listed}"))
    return None


def _require_known_runtimes(item: pytest.Item) -> None:
    for mark in item.iter_markers("runtimes"):
        unknown = [name for name in mark.args if name not in _RUNTIMES]
        if unknown or not mark.args:
            wrong = ", ".join(map(repr, unknown)) or "nothing"
            raise ConfigurationError(
                f"{item.nodeid}: the mark runtimes names {wrong}; known: {', '.join(_RUNTIMES)}"
            )


def _arguments(item: pytest.Item, marker: str) -> list[object]:
    """The arguments of all marks of that name, the function's own last, each once."""
    return list(dict.fromkeys(argument for mark in _outermost_first(item, marker) for argument in mark.args))


def _outermost_first(item: pytest.Item, marker: str) -> Iterator[pytest.Mark]:
    return reversed(list(item.iter_markers(marker)))


def manifest_of(items: Iterable[pytest.Item], problem: str | None) -> Manifest:
    """What a worker tells its controller."""
    from pytest_rknpu.farm.manifest import Manifest, Planned

    tests = {}
    for item in items:
        ours = item.stash.get(OURS, None)
        if ours is not None:
            board = ours.board.name if ours.board else None
            tests[item.nodeid] = Planned(board, ours.record.requirements, ours.record.seed)
    return Manifest(tests, problem)

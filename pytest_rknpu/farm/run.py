"""What one run of pytest is about: its options, its seed, its boards.

Made by every process of a run, from the same command line; what chance decides (run id, seed) comes from the
controller, so that xdist workers agree. boards.toml is read when somebody asks for a board, not before.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.farm.no_boards import Sought

if TYPE_CHECKING:
    from pytest_rknpu.farm.pools import Pool
    from pytest_rknpu.inventory.budget_table import Budget
    from pytest_rknpu.inventory.model_table import ModelTable
    from pytest_rknpu.inventory.schema import Board, BoardsFile
    from pytest_rknpu.waivers import WaiversFile

_SEED_BITS = 63


class Effort(str, Enum):
    """How long a run may take: suites scale their iteration counts by it (``--rknpu-effort``)."""

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"

    def __str__(self) -> str:
        return self.value

    def rounds(self, normal: int) -> int:
        """``normal`` iterations; a tenth of them (but one) when quick, ten times as many when thorough."""
        if self is Effort.QUICK:
            return max(1, normal // 10)
        return normal * 10 if self is Effort.THOROUGH else normal


@dataclass(frozen=True)
class Origin:
    """What the controller of a run decides and its workers take over.

    ``command`` is the command line, quoted for a shell; ``manifest`` is the folder where workers leave their
    collections (`pytest_rknpu.farm.manifest`), not made before one does.
    """

    run_id: str
    seed: int
    command: str
    manifest: str


def originate(seed: int | None, arguments: Iterable[str]) -> Origin:
    """A new run: an id that sorts by time, and the seed that was asked for or a random one."""
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    run_id = f"{now}-{os.urandom(3).hex()}"
    program = Path(sys.argv[0]).name
    return Origin(
        run_id=run_id,
        seed=int.from_bytes(os.urandom(4), "big") if seed is None else seed,
        command=shlex.join(["pytest" if program in ("", "__main__.py") else program, *arguments]),
        manifest=str(Path(tempfile.gettempdir(), f"pytest-rknpu-{run_id}")),
    )


def derive_seed(seed: int, name: str) -> int:
    """The seed of one test or board: a hash of the run's seed and ``name``, 0 to 2**63 - 1."""
    digest = hashlib.sha256(f"{seed}\n{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)


@dataclass(frozen=True)
class Run:
    """The options of a run, checked. ``boards_file`` is None where no file was named."""

    origin: Origin
    effort: Effort
    wait_s: float
    boards_file: Path | None
    globs: tuple[str, ...]
    socs: tuple[str, ...]
    faults: tuple[str, ...]
    report: Path | None
    latency_model: str | None = None
    baseline: Path | None = None
    """A report folder or results.jsonl of another run."""
    waivers_named: Path | None = None
    """The waivers.toml that an option or ini value names."""
    losses: int = 2
    """How often a board may be lost until it gets no more tests."""
    patience_s: float = 60.0
    """How long a board that was lost may take to be reached again."""
    tags: tuple[str, ...] = ()
    """What the boards must be tagged with, each ``KEY=VALUE``."""
    per_soc: bool = False
    """Whether boards that are equal stand for each other."""
    durations: Path | None = None
    """A report folder or results.jsonl of an earlier run: how long tests take."""
    sought: Sought = field(default_factory=Sought)
    """Where a boards.toml may be named, for those who have none."""
    asked: bool = field(default=False)
    """Whether an option chooses boards: then they are looked at whatever is collected."""

    @property
    def configured(self) -> bool:
        """Whether this run has anything to do with boards, as far as one can tell before collection."""
        return self.asked or self.boards_file is not None or self.report is not None

    @cached_property
    def file(self) -> BoardsFile:
        """What boards.toml says. Raises ConfigurationError: no file named, or a broken one."""
        from pytest_rknpu.inventory.schema import load_boards

        if self.boards_file is None:
            raise ConfigurationError(self.sought.where_not())
        if not os.path.lexists(self.boards_file):
            raise ConfigurationError(self.sought.not_there(self.boards_file))
        return load_boards(self.boards_file)

    def budgets_for(self, board: Board) -> tuple[Budget, ...]:
        """The budgets that hold for a board, one for each model and core mask. Raises as ``file``."""
        from pytest_rknpu.inventory.budgets import budgets_for

        return budgets_for(self.file.budgets, board)

    @property
    def models(self) -> tuple[ModelTable, ...]:
        """The user's models. Raises ConfigurationError as ``file``."""
        return self.file.models

    @cached_property
    def waivers(self) -> WaiversFile | None:
        """The known failures in force: the file that was named, else the one beside boards.toml, if any.

        Raises ConfigurationError for a broken file, or one that was named and is not there.
        """
        beside = self.boards_file.parent / "waivers.toml" if self.boards_file is not None else None
        path = self.waivers_named or (beside if beside is not None and beside.exists() else None)
        if path is None:
            return None
        from pytest_rknpu.waivers import load_waivers

        return load_waivers(path)

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The boards that were selected, with the faults and the latency model that were asked for.

        Each is a pool of its own, unless boards stand for each other. Raises ConfigurationError: as ``file``,
        nothing selected, a fault or latency model for a real board, boards that cannot stand for each other.
        """
        from pytest_rknpu.farm.pools import pools_of, single
        from pytest_rknpu.inventory.selection import select

        chosen = select(self.file.boards, self.globs, self.socs, self.tags)
        played = [_played(board, self.faults, self.latency_model) for board in chosen]
        return pools_of(played) if self.per_soc else tuple(map(single, played))

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        """One for each pool, under the pool's name: what there is a test item for. Raises as ``pools``."""
        return tuple(pool.board for pool in self.pools)

    def pool(self, name: str) -> Pool:
        """The pool of that name."""
        return next(pool for pool in self.pools if pool.board.name == name)

    def board(self, name: str) -> Board:
        """What the boards of that pool have in common: without pools, the selected board of that name."""
        return self.pool(name).board

    def station(self, name: str) -> str:
        """What is leased for the tests of the pool of that name: a machine, or one of several."""
        pool = self.pool(name)
        if pool.places > 1:
            return f"pool {name}"
        return pool.boards[0].lease_key(self.boards_file or Path())

    @property
    def places(self) -> dict[str, int]:
        """How many boards each station has."""
        return {self.station(pool.board.name): pool.places for pool in self.pools}


def _played(board: Board, faults: tuple[str, ...], latency_model: str | None) -> Board:
    """The board with seeded faults and a latency model. Only an emulated board can have any."""
    if not faults and latency_model is None:
        return board
    if board.runtime != "emulator":
        option = f"--rknpu-fault {faults[0]}" if faults else f"--rknpu-latency-model {latency_model}"
        raise ConfigurationError(
            f"{option}: board {board.name} is not emulated (runtime {board.runtime}); "
            "select emulated boards only, with --board"
        )
    table: dict[str, Any] = board.model_dump(exclude_unset=True)
    if faults:
        table["faults"] = [*board.faults, *faults]
    if latency_model is not None:
        table["latency_model"] = latency_model
    from pytest_rknpu.inventory.explain import explain_options

    try:
        return type(board).model_validate(table)
    except ValueError as error:  # pydantic's ValidationError
        raise ConfigurationError(explain_options(error, _OPTIONS)) from None


# Keys of a board that options set as well.
_OPTIONS = {"faults": "--rknpu-fault", "latency_model": "--rknpu-latency-model"}


_PATHS = {
    "--boards": "rknpu_boards",
    "--rknpu-report": "rknpu_report",
    "--rknpu-baseline": "rknpu_baseline",
    "--rknpu-waivers": "rknpu_waivers",
    "--rknpu-durations": "rknpu_durations",
}


def run_of(config: pytest.Config, origin: Origin | None) -> Run:
    """Read the options. ``origin`` is what the controller decided, None in the controller itself.

    Raises ConfigurationError for values that cannot be meant.
    """
    option = config.getoption
    for name, dest in _PATHS.items():
        if option(dest) == "":  # of a shell variable that is not set, most likely
            raise ConfigurationError(f"{name}: is empty; give a path, or leave it out")
    globs, socs, faults = (tuple(option(f"rknpu_{name}") or ()) for name in ("board_globs", "socs", "faults"))
    tags, per_soc = tuple(option("rknpu_tags") or ()), option("rknpu_per") == "soc"
    report: str | None = option("rknpu_report")
    explicit: str | None = option("rknpu_boards")
    seed: int | None = option("rknpu_seed")
    wait_s: float = option("rknpu_wait")
    if seed is not None and not 0 <= seed < 2**_SEED_BITS:
        raise ConfigurationError(f"--rknpu-seed {seed}: give a number from 0 to 2**63 - 1")
    losses: int = option("rknpu_losses")
    patience_s: float = option("rknpu_patience")
    if not 0 <= patience_s < float("inf"):
        raise ConfigurationError(f"--rknpu-patience {patience_s}: give a number of seconds, 0 or more")
    if losses < 1:
        raise ConfigurationError(f"--rknpu-losses {losses}: give a number from 1")
    if not 0 <= wait_s < float("inf"):
        raise ConfigurationError(f"--rknpu-wait {wait_s}: give a number of seconds, 0 or more")
    return Run(
        origin=origin or originate(seed, map(str, config.invocation_params.args)),
        effort=Effort(option("rknpu_effort")),
        wait_s=wait_s,
        boards_file=_named_file(config, "rknpu_boards", explicit),
        globs=globs,
        socs=socs,
        faults=faults,
        report=Path(os.path.abspath(config.invocation_params.dir / report)) if report else None,
        latency_model=option("rknpu_latency_model"),
        baseline=_named_file(config, "rknpu_baseline", option("rknpu_baseline")),
        losses=losses,
        patience_s=patience_s,
        waivers_named=_named_file(config, "rknpu_waivers", option("rknpu_waivers")),
        tags=tags,
        per_soc=per_soc,
        durations=_named_file(config, "rknpu_durations", option("rknpu_durations")),
        sought=Sought(config.invocation_params.dir, config.inipath, by_option=bool(explicit)),
        asked=bool(explicit or globs or socs or tags or per_soc or faults or option("rknpu_latency_model")),
    )


def _named_file(config: pytest.Config, ini: str, explicit: str | None) -> Path | None:
    """What an option names starts at the working folder, the ini value at the ini file's."""
    if explicit:
        return Path(config.invocation_params.dir, explicit)
    named = str(config.getini(ini) or "")
    if not named:
        return None
    return Path(config.inipath.parent if config.inipath else config.rootpath, named)


RUN = pytest.StashKey[Run]()
"""Where `pytest.Config.stash` holds the run."""

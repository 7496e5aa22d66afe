"""`rknpu history`: reads what is new, says what the runs show together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history import Collected, History, HistoryDatabase, collect, overview

EXIT_REGRESSED = 1
EXIT_LEFT_OUT = 3
_TELL_EVERY = 50


@dataclass(frozen=True)
class Asked:
    """The command line. ``database`` None: in memory, for this once."""

    named: Sequence[Path]
    database: Path | None
    boards: Sequence[str]
    requirements: Sequence[str]


def read_history(asked: Asked) -> tuple[History, Collected]:
    """Read what is new and put it together.

    Raises ConfigurationError: nothing named, a name that does not exist, no run, a database that cannot be
    used, a glob that matches nothing.
    """
    if not asked.named and (asked.database is None or not asked.database.exists()):
        raise ConfigurationError(
            "nothing to read: name report folders, or a --database FILE that was filled earlier"
        )
    with HistoryDatabase(asked.database) as database:
        collected = collect(database, asked.named, _progress())
        try:
            return overview(database, asked.boards, asked.requirements), collected
        except ConfigurationError as error:
            if not collected.left_out or database.size().runs:
                raise
            listed = "; ".join(map(str, collected.left_out[:3]))
            raise ConfigurationError(f"{error}. Left out: {listed}") from None


def _progress() -> Callable[[int], None]:
    """Tells a person who waits; nobody else."""
    if not sys.stderr.isatty():
        return lambda read: None

    def tell(read: int) -> None:
        if read % _TELL_EVERY == 0:
            print(f"{read} files read", file=sys.stderr)

    return tell


def exit_code(history: History, collected: Collected, fail_on_regression: bool) -> int:
    """0: all was read; 1: something regressed, where that is asked for; 3: something was left out."""
    if fail_on_regression and history.regressed:
        return EXIT_REGRESSED
    return EXIT_LEFT_OUT if collected.left_out else 0

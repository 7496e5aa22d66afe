"""Whether the boards of a pool run the same versions: only then do its results hold for one such set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_rknpu.report.results import Result

# Of one moment, or of this host, and not of the board.
_NOT_OF_THE_BOARD = frozenset({"clocks", "toolkit", "model_compiler"})


@dataclass(frozen=True)
class Difference:
    """Versions in which two boards of a pool differ, each with both values."""

    first: str
    other: str
    versions: Mapping[str, tuple[str, str]]

    def __str__(self) -> str:
        listed = ", ".join(f"{key} {one} there, {two} here" for key, (one, two) in self.versions.items())
        return f"board {self.other} does not run what board {self.first} of its pool does: {listed}"


class PoolVersions:
    """The results of one run, as they come: which boards of each pool differ from the first that ran."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, Mapping[str, str]]] = {}
        self._differences: dict[str, dict[str, Difference]] = {}

    def marked(self, result: Result) -> Result:
        """The result, with a note where its board differs from the first one of its pool."""
        if result.board is None or result.ran_on is None or not result.versions:
            return result
        first, versions = self._first.setdefault(result.board, (result.ran_on, result.versions))
        differing = {
            key: (versions.get(key, "not recorded"), value)
            for key, value in result.versions.items()
            if key not in _NOT_OF_THE_BOARD and versions.get(key, "not recorded") != value
        }
        if first == result.ran_on or not differing:
            return result
        difference = Difference(first, result.ran_on, differing)
        self._differences.setdefault(result.board, {})[result.ran_on] = difference
        return replace(result, notes=(*result.notes, str(difference)))

    def lines(self) -> list[str]:
        """One for each board that differs, by pool."""
        return [
            f"NOT EQUAL: pool {pool}: {difference}"
            for pool, differences in self._differences.items()
            for difference in differences.values()
        ]

"""Equal boards (``--rknpu-per soc``): what a SoC's suites need is one of them, whichever is free.

Pure: boards in, pools out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_rknpu.errors import ConfigurationError

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

# What says where a board is, who it is and how to get there. In all else equal boards are described alike.
_NOT_COMPARED = frozenset(
    {"name", "host", "user", "port", "ssh_config", "key", "jump", "host_key", "serial", "python", "place"}
    | {"device_id", "seed", "pool", "note", "power", "model_cache", "places"}
)


@dataclass(frozen=True)
class Pool:
    """``boards`` stand for each other; ``board`` describes what they have in common, under the pool's name.

    A board that nobody stands for is a pool of one, with its own name.
    """

    board: Board
    boards: tuple[Board, ...]

    @property
    def places(self) -> int:
        """How many workers can have one at once."""
        return sum(board.places or 1 for board in self.boards) if self.shared else 1

    @property
    def shared(self) -> bool:
        """Whether several boards come into question."""
        return len(self.boards) > 1 or self.board.name != self.boards[0].name


def single(board: Board) -> Pool:
    """The pool of a board that nobody stands for."""
    return Pool(board, (board,))


def pools_of(boards: Sequence[Board]) -> tuple[Pool, ...]:
    """The boards by pool, in their order.

    A pool is what boards name by ``pool``; without it the boards of one SoC and runtime. It is called like
    its SoC, or SOC-RUNTIME where boards of that SoC have different runtimes.

    Raises ConfigurationError for boards that cannot stand for each other.
    """
    groups: dict[tuple[str, str], list[Board]] = {}
    for board in boards:
        groups.setdefault((board.pool or f"{board.soc}-{board.runtime}", board.pool or ""), []).append(board)
    pools = []
    for (name, given), members in groups.items():
        _require_alike(name, members, _GIVEN_POOLS_COMPARE if given else _compared(members))
        alone = sum(other[0].soc == members[0].soc for other in groups.values()) == 1
        called = members[0].soc if alone and not given else name
        pools.append(Pool(members[0].model_copy(update={"name": called}), tuple(members)))
    _require_names(pools)
    return tuple(pools)


# Who names a pool says so himself; what is left is what one kind of test, and one lease, need.
_GIVEN_POOLS_COMPARE = ("soc", "runtime", "transport", "coordinator")


def _compared(boards: Iterable[Board]) -> tuple[str, ...]:
    fields = {field for board in boards for field in type(board).model_fields}
    return tuple(sorted(fields - _NOT_COMPARED))


def _require_alike(pool: str, boards: Sequence[Board], fields: Iterable[str]) -> None:
    first = boards[0]
    for board in boards[1:]:
        differ = [field for field in fields if getattr(first, field) != getattr(board, field)]
        if differ:
            raise ConfigurationError(
                f"--rknpu-per soc: boards {first.name} and {board.name} (pool {pool}) cannot stand for each "
                f"other: they differ in {', '.join(differ)}; give boards that can the same `pool`, or choose "
                "among them with --board or --tag"
            )
        if board.filter and board.filter == first.filter:
            raise ConfigurationError(
                f"--rknpu-per soc: boards {first.name} and {board.name} ask for the same places; "
                "keep one, and say with `places` how many a run may hold"
            )


def _require_names(pools: Iterable[Pool]) -> None:
    names: dict[str, Pool] = {}
    for pool in pools:
        other = names.setdefault(pool.board.name, pool)
        if other is not pool:
            raise ConfigurationError(
                f"--rknpu-per soc: two pools are called {pool.board.name}, that of board "
                f"{other.boards[0].name} and that of board {pool.boards[0].name}; name one by `pool`"
            )

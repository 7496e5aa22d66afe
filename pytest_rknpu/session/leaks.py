"""Whether rounds of create and destroy give everything back: a board's counts between them (MEM-08)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Snapshot = Mapping[str, "int | None"]

UNITS: Mapping[str, str] = {"descriptors": "", "mappings": "", "dma_bytes": "B"}
"""What the command ``resources`` counts, and in which unit."""


@dataclass(frozen=True)
class Growth:
    """How much more of a resource there is at the end; ``leaked``: the rounds are to blame."""

    amount: int
    leaked: bool


def growth_of(resource: str, snapshots: Sequence[Snapshot], rounds: int) -> Growth | None:
    """Compare ``snapshots``, between each two of which the same share of ``rounds`` took place.

    None where the board does not tell. Descriptors are this process's own: one more is a leak. A mapping may
    come and go with the allocator's arenas; a leak of mappings comes with every round. DMA bytes are those
    of the whole board, where a display or camera allocates too: a leak grows in every share of the rounds.
    """
    counts = [count for count in (snapshot[resource] for snapshot in snapshots) if count is not None]
    if len(counts) < len(snapshots):
        return None
    amount = counts[-1] - counts[0]
    if resource == "dma_bytes":
        return Growth(amount, all(after > before for before, after in pairwise(counts)))
    return Growth(amount, amount > (rounds // 2 if resource == "mappings" else 0))

"""What a report may say of boards.toml: what boards are, and nothing by which they can be reached."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

# Keys that give nothing away. Whatever is added to boards.toml stays out until it is named here.
_PUBLIC = (
    "name",
    "soc",
    "runtime",
    "transport",
    "host_key",
    "sudo",
    "stand_in",
    "target",
    "seed",
    "faults",
    "runtime_version",
    "driver_version",
    "latency_model",
    "pin",
    "allow_unpinned",
)


def public_table(board: Board) -> dict[str, Any]:
    """The keys that were given, without those that are nobody's business; these are named in ``removed``."""
    given = board.model_dump(mode="json", exclude_unset=True)
    kept = {key: given[key] for key in _PUBLIC if key in given}
    return {**kept, "removed": sorted(set(given) - set(kept))}


def write_public_boards(path: Path, boards: Iterable[Board]) -> None:
    """Write the tables as JSON. Raises OSError as files do."""
    tables = [public_table(board) for board in boards]
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")

"""`rknpu boards`: the boards of a file, what each can do, and why one cannot be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.cli.availability import Availability, availability
from pytest_rknpu.inventory.schema import Board, BoardsFile
from pytest_rknpu.inventory.socs import SoC


@dataclass(frozen=True)
class _Row:
    board: Board
    soc: SoC
    availability: Availability


def _rows(file: BoardsFile) -> list[_Row]:
    return [_Row(board, board.chip, availability(board)) for board in file.boards]


def describe_as_text(file: BoardsFile) -> str:
    """Return two lines for each board: what it is and whether it can be used, and what its SoC can do."""
    rows = _rows(file)
    columns = [[row.board.name, row.board.soc, row.board.runtime, row.board.evidence] for row in rows]
    widths = [max(len(line[column]) for line in columns) for column in range(4)]
    lines = [f"{file.path}: {len(rows)} board{'s' if len(rows) != 1 else ''}"]
    for row, cells in zip(rows, columns, strict=True):
        padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{padded}  {row.availability.sentence()}")
        lines += [f"    {detail}" for detail in _details(row)]
    lines += [f"WARNING {warning}" for warning in file.warnings]
    return "\n".join(lines)


_BY_TOOLKIT: Mapping[str, str] = {
    "simulator": "compile and simulate on this host",
    "connected": "infer, evaluate time and memory through RKNN-Toolkit2; no C API",
}


def _details(row: _Row) -> list[str]:
    """Say what the board can do, and what boards.toml adds."""
    board = row.board
    details = [_BY_TOOLKIT.get(board.runtime) or _abilities(row.soc)]
    if board.transport == "ssh":
        user = f"{board.user}@" if board.user else ""
        details.append(f"ssh {user}{board.host}" + (f" port {board.port}" if board.port else ""))
    if board.transport == "labgrid":
        tags = " ".join(f"{key}={value}" for key, value in board.filter.items())
        details.append(f"labgrid place {board.place or f'with the tags {tags}'}")
    if board.transport == "adb":
        details.append(f"adb device {board.serial or '(the only one)'}")
    if board.runtime == "connected":
        details.append(f"adb device {board.device_id or '(the only one)'}, target {board.platform}")
    if board.faults:
        details.append("faults: " + ", ".join(board.faults))
    if board.tags:
        details.append("tags: " + ", ".join(f"{key}={value}" for key, value in board.tags.items()))
    if board.pool:
        details.append(f"pool: {board.pool}")
    if board.note:
        details.append(" ".join(board.note.split()))
    return details


def _abilities(soc: SoC) -> str:
    """Sum up a row of the SoC table; unknown values are left out."""
    words = [
        f"{soc.npu_cores} NPU core{'s' if soc.npu_cores > 1 else ''}",
        f"{soc.runtime} ({soc.context_bits}-bit contexts)",
        "copying API and zero copy"
        if "rknn_inputs_set" not in soc.unsupported_functions
        else "zero copy only",
        "core masks" if soc.core_masks else "no core masks",
        "sparse" if soc.sparse else "not sparse",
    ]
    if soc.sram_bytes is not None:
        words.append(f"{soc.sram_bytes // 1024} KiB SRAM")
    if soc.non_cacheable:
        words.append("non-cacheable memory")
    return ", ".join(words)


def describe_as_json(file: BoardsFile) -> str:
    """Return the same as JSON: file, boards (name, ..., usable, reason, soc_facts) and warnings.

    ``usable`` is null where only the board itself could tell. Unknown facts of a SoC are null.
    """
    boards = [
        {
            **row.board.model_dump(mode="json"),
            "power": _power(row.board),
            "evidence": row.board.evidence,
            "usable": row.availability.usable,
            "reason": row.availability.reason,
            "soc_facts": _facts(row.soc),
        }
        for row in _rows(file)
    ]
    document = {"file": str(file.path), "boards": boards, "warnings": list(file.warnings)}
    return json.dumps(document, indent=2)


def _power(board: Board) -> dict[str, Any] | str | None:
    """How it is switched, without the arguments of the command: they may hold a password."""
    if board.power is None or board.power == "labgrid":
        return board.power
    return {"program": board.power.program, "wait_s": board.power.wait_s, "limit_s": board.power.limit_s}


def _facts(soc: SoC) -> dict[str, Any]:
    facts = {key: value for key, value in vars(soc).items() if key != "feature_atom"}
    facts["feature_atom"] = dict(soc.feature_atom)
    facts["unsupported_functions"] = sorted(soc.unsupported_functions)
    return facts

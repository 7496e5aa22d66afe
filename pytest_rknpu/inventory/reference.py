"""The tables of docs/boards.md, made from the schema and the SoC table, so that they agree with the code.

``python -m pytest_rknpu.inventory.reference docs/boards.md`` writes them anew between their markers.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_rknpu.inventory.schema import Board, only_with
from pytest_rknpu.inventory.socs import SOCS, SoC

_MARKED = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def updated(text: str) -> str:
    """Return a Markdown text with every marked table made anew.

    Raises KeyError for a marker that names no table.
    """
    return _MARKED.sub(lambda found: f"{found[1]}{_TABLES[found['name']]()}{found[3]}", text)


def keys_table() -> str:
    """Return one line for each key that a ``[[board]]`` table may have."""
    properties = Board.model_json_schema()["properties"]
    lines = ["| key | value | where | meaning | example |", "|---|---|---|---|---|"]
    for key, field in Board.model_fields.items():
        example = f"`{key} = {json.dumps((field.examples or [None])[0])}`"
        where = "every board, needed" if field.is_required() else _where(key)
        lines.append(f"| `{key}` | {_value(properties[key])} | {where} | {field.description} | {example} |")
    return "\n".join(lines) + "\n"


def _where(key: str) -> str:
    need = only_with(key)
    return f'`{need[0]} = "{need[1]}"`' if need else "every board"


def _value(schema: Mapping[str, Any]) -> str:
    """Say in words what a JSON schema takes."""
    if "anyOf" in schema:
        return _value(next(branch for branch in schema["anyOf"] if branch.get("type") != "null"))
    if "enum" in schema:
        return " or ".join(f'`"{value}"`' for value in schema["enum"])
    if schema["type"] == "array":
        return "list of texts"
    if schema["type"] == "integer":
        upper = schema["maximum"]
        return f"whole number from {schema['minimum']}" + (f" to {upper}" if upper < 2**63 - 1 else "")
    return "text"


def socs_table() -> str:
    """Return one line for each SoC; a question mark is what no source tells."""
    lines = [
        "| SoC | runtime | contexts | cores | core masks | C2 int8/float16 | width | sparse | SRAM | clock |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(_soc_cells(soc))} |" for soc in SOCS.values()]
    return "\n".join(lines) + "\n"


def _soc_cells(soc: SoC) -> list[str]:
    masks = [mask.removeprefix("RKNN_NPU_CORE_") for mask in soc.core_masks]
    atoms = "/".join(str(soc.feature_atom.get(dtype, "?")) for dtype in ("int8", "float16"))
    return [
        ", ".join((soc.name, *soc.aliases)),
        soc.runtime,
        f"{soc.context_bits} bit",
        str(soc.npu_cores),
        ", ".join(masks) or "none",
        atoms,
        _or_unknown(soc.width_alignment),
        "yes" if soc.sparse else "no",
        "?" if soc.sram_bytes is None else f"{soc.sram_bytes // 1024} KiB",
        soc.npu_devfreq or "none known",
    ]


def _or_unknown(value: int | None) -> str:
    return "?" if value is None else str(value)


_TABLES: Mapping[str, Callable[[], str]] = {"keys": keys_table, "socs": socs_table}


def main(arguments: list[str]) -> None:
    """Write the tables of each file anew."""
    for name in arguments:
        file = Path(name)
        file.write_text(updated(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The tables of docs/boards-reference.md and of other pages, made from the schema.

``python -m pytest_rknpu.inventory.reference docs/*.md`` writes them anew between their markers, so that they
agree with the code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sized
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pytest_rknpu.inventory.board_table import Board
from pytest_rknpu.inventory.budget_table import Budget
from pytest_rknpu.inventory.key_rules import goes_with
from pytest_rknpu.inventory.model_table import InputTable, LimitsTable, ModelTable, ToleranceTable
from pytest_rknpu.inventory.pinned_clocks import PINNED_CLOCKS
from pytest_rknpu.inventory.power_table import PowerTable
from pytest_rknpu.inventory.published import PUBLISHED_FPS, suggested_ms
from pytest_rknpu.inventory.socs import SOCS, SoC

_MARKED = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def updated(text: str) -> str:
    """Return a Markdown text with every marked table made anew.

    Raises KeyError for a marker that names no table.
    """
    return _MARKED.sub(lambda found: f"{found[1]}{_TABLES[found['name']]()}{found[3]}", text)


def keys_table() -> str:
    """Return one line for each key that a ``[[board]]`` table may have, and with which others it goes."""
    lines = ["| key | type | default | goes with | meaning | example |", "|---|---|---|---|---|---|"]
    for key in Board.model_fields:
        kind, default, meaning, example = _described(Board, key)
        lines.append(f"| `{key}` | {kind} | {default} | {_where(key)} | {meaning} | {example} |")
    return "\n".join(lines) + "\n"


def plain_keys_table(table: type[BaseModel]) -> str:
    """Return one line for each key that a table of boards.toml may have."""
    lines = ["| key | type | default | meaning | example |", "|---|---|---|---|---|"]
    lines += [f"| `{key}` | {' | '.join(_described(table, key))} |" for key in table.model_fields]
    return "\n".join(lines) + "\n"


def _described(table: type[BaseModel], key: str) -> tuple[str, str, str, str]:
    """Type with unit, default, meaning and example of a key."""
    field = table.model_fields[key]
    example = f"`{key} = {_toml((field.examples or [None])[0])}`"
    kind = _value(table.model_json_schema()["properties"][key]) + _unit(key)
    return kind, _default(field), str(field.description), example


def _unit(key: str) -> str:
    """The unit that the name of a key ends with."""
    return next((f", in {unit}" for suffix, unit in _UNITS.items() if key.endswith(suffix)), "")


_UNITS: Mapping[str, str] = {"_ms": "milliseconds", "_s": "seconds", "_bytes": "bytes", "_db": "dB"}


def _default(field: FieldInfo) -> str:
    """What holds where the key is left out; a dash where nothing does, or where the meaning says it."""
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    empty = value is None or (isinstance(value, Sized) and not len(value))
    return "-" if empty else f"`{_toml(value)}`"


def clocks_table() -> str:
    """Return one line for each SoC: to what its clocks are pinned."""
    lines = ["| SoC | NPU MHz | DDR MHz | CPU MHz, by policy |", "|---|---|---|---|"]
    for name, clocks in PINNED_CLOCKS.items():
        cpu = ", ".join(f"{policy} {hertz // 10**6}" for policy, hertz in clocks.cpu.items())
        lines.append(f"| {name} | {_megahertz(clocks.npu)} | {_megahertz(clocks.ddr)} | {cpu or 'highest'} |")
    return "\n".join(lines) + "\n"


def latency_models_table() -> str:
    """Return one line for each latency model of the emulator: what differs from the steady one."""
    from pytest_rknpu.emulator.latency import LATENCY_MODELS

    lines = ["| latency model | what the suites say of it |", "|---|---|"]
    lines += [f"| `{name}` | {model.shows} |" for name, model in LATENCY_MODELS.items()]
    return "\n".join(lines) + "\n"


def published_table() -> str:
    """Return one line for each published model: frames per second and the budgets that follow, by SoC."""
    socs = list(next(iter(PUBLISHED_FPS.values())))
    lines = [f"| model | {' | '.join(socs)} |", "|---" * (len(socs) + 1) + "|"]
    for model, rates in PUBLISHED_FPS.items():
        cells = [
            f"{rates[soc]:g}: {' / '.join(map('{:g}'.format, suggested_ms(rates[soc])))}" for soc in socs
        ]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _megahertz(hertz: int | None) -> str:
    return "highest, if any" if hertz is None else str(hertz // 10**6)


def _toml(value: object) -> str:
    """Write a value as TOML has it on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value)


def _where(key: str) -> str:
    need = goes_with(key)
    return " or ".join(f'`{need[0]} = "{value}"`' for value in need[1]) if need else "every board"


def _value(schema: Mapping[str, Any]) -> str:
    """Say in words what a JSON schema takes."""
    if "anyOf" in schema:
        return " or ".join(_value(branch) for branch in schema["anyOf"] if branch.get("type") != "null")
    if "$ref" in schema:
        return "table"
    if "const" in schema:
        return f'`"{schema["const"]}"`'
    if "enum" in schema:
        return " or ".join(f'`"{value}"`' for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_LISTED[schema['items'].get('type', 'object')]}"
    if schema["type"] == "integer":
        upper = schema["maximum"]
        return f"whole number from {schema['minimum']}" + (f" to {upper}" if upper < 2**31 - 1 else "")
    if schema["type"] == "number":
        return _number(schema)
    if schema["type"] == "boolean":
        return "`true` or `false`"
    if schema["type"] == "object":
        values = schema.get("additionalProperties", {"type": "string"})  # keys with a pattern: tags
        return f"table of {_LISTED[values.get('type', 'object')]}"
    return "text"


def _number(schema: Mapping[str, Any]) -> str:
    """A number and its bounds; an upper one that no sensible value comes near is left out."""
    words = ["number"]
    if "exclusiveMinimum" in schema:
        words.append(f"above {schema['exclusiveMinimum']:g}")
    elif "minimum" in schema:
        words.append(f"from {schema['minimum']:g}")
    if schema.get("maximum", 1e7) < 1e7:
        words.append(f"to {schema['maximum']:g}")
    return " ".join(words)


_LISTED: Mapping[str, str] = {
    "string": "texts",
    "integer": "whole numbers",
    "number": "numbers",
    "object": "tables",
}


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


_TABLES: Mapping[str, Callable[[], str]] = {
    "budgets": partial(plain_keys_table, Budget),
    "clocks": clocks_table,
    "inputs": partial(plain_keys_table, InputTable),
    "keys": keys_table,
    "latency_models": latency_models_table,
    "models": partial(plain_keys_table, ModelTable),
    "per_soc": partial(plain_keys_table, LimitsTable),
    "power": partial(plain_keys_table, PowerTable),
    "published": published_table,
    "socs": socs_table,
    "tolerances": partial(plain_keys_table, ToleranceTable),
}


def main(arguments: list[str]) -> None:
    """Write the tables of each file anew."""
    for name in arguments:
        file = Path(name)
        file.write_text(updated(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

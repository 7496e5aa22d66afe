"""Turn what pydantic finds wrong in a table into sentences that name table and key and say what to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pytest_rknpu.inventory.wording import did_you_mean, quoted

# pydantic's error type -> what the key has to be. What is not here is told in pydantic's own words.
_EXPECTED: Mapping[str, str] = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "tuple_type": "must be a list",
    "string_too_long": "must have at most {max_length} characters",
    "float_type": "must be a number",
    "mapping_type": "must be a table",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}

# A pattern says little to the reader: what it means, by key.
_PATTERNS: Mapping[str, str] = {
    "name": "must be lower-case letters, digits, `_`, `.` and `-`, and begin with a letter or digit",
    "dense": "must be the name of another [[model]]: lower-case letters, digits, `_`, `.` and `-`",
    "pool": "must be lower-case letters, digits, `_`, `.` and `-`, and begin with a letter or digit",
    **dict.fromkeys(
        ("tags", "filter"),
        "must be keys of two or more lower-case letters, digits and `_`, with values of letters, digits, "
        "`_`, `.`, `:` and `-`",
    ),
    "place": "must be the name of a labgrid place, without blanks",
    "coordinator": "must be `host:port`",
    "host": "must be a host name, an address or a Host alias of the ssh configuration",
    "user": "must be a plain user name",
    "python": "must be a command or a path without blanks or characters special to a shell",
    "runtime_version": 'must be a version such as "2.3.2"',
    "driver_version": 'must be a version such as "0.9.8"',
    **dict.fromkeys(("note", "reason", "link"), "must have no control characters but line breaks"),
    "library": "must be a path that does not begin with `-` and has no control characters",
    **dict.fromkeys(
        ("ssh_config", "key", "model_cache", "path", "weights", "rknn", "calibration", "labelled"),
        "must be a path that does not begin with `-` and has no control characters",
    ),
    **dict.fromkeys(
        ("device_id", "serial"), "must be a serial number or `address:port` as `adb devices` shows it"
    ),
    "jump": "must be `host`, `user@host` or `user@host:port`",
}


_PROBLEMS_SHOWN = 20


def listed_problems(problems: Sequence[str]) -> str:
    """All that is wrong in one sentence; of very much, the beginning."""
    more = len(problems) - _PROBLEMS_SHOWN
    return "; ".join([*problems[:_PROBLEMS_SHOWN], *([f"and {more} more problems"] if more > 0 else [])])


def heading(number: int, name: object, kind: str = "board") -> str:
    """Name a table: its kind, its number in the file, counted from 1, and its name where it has one."""
    return f"[[{kind}]] {number}" + (f" ({quoted(name)})" if isinstance(name, str) else "")


def explain_duplicates(tables: Sequence[Mapping[str, Any]], kind: str = "board") -> list[str]:
    """Name the tables that have the name of an earlier one."""
    first: dict[str, int] = {}
    problems = []
    for number, table in enumerate(tables, start=1):
        name = table.get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            taken = f'key "name": taken by [[{kind}]] {first[name]}; names must differ'
            problems.append(f"{heading(number, name, kind)}, {taken}")
        first.setdefault(name, number)
    return problems


def explain_table(
    number: int,
    table: Mapping[str, Any],
    error: ValidationError,
    known: Collection[str],
    kind: str = "board",
) -> list[str]:
    """Say all that is wrong with one table, a sentence each."""
    where = heading(number, table.get("name"), kind)
    return [f"{where}, {_sentence(detail, known)}" for detail in error.errors(include_url=False)]


def explain_options(error: ValueError, options: Mapping[str, str]) -> str:
    """Say what is wrong with keys that options have set; ``options`` gives the option for each key."""
    if not isinstance(error, ValidationError):
        return str(error)
    told = {}
    for detail in error.errors(include_url=False):
        location = detail["loc"]
        key = str(location[0]) if location else ""
        told[options.get(key, key)] = str(detail.get("ctx", {}).get("error", detail["msg"]))
    return "; ".join(f"{option}: {text}" if option else text for option, text in told.items())


def _sentence(detail: ErrorDetails, known: Collection[str]) -> str:
    """Say one thing that is wrong, beginning with the key."""
    kind, location = detail["type"], detail["loc"]
    if not location:  # a check of the whole table, which names the key itself
        return str(detail["ctx"]["error"])
    key = str(location[0])
    if kind == "extra_forbidden" and len(location) == 1:
        return f"unknown key {quoted(key)}{did_you_mean(key, known) or '; known: ' + ', '.join(known)}"
    place = f'key "{key}"' + "".join(_step(entry) for entry in location[1:])
    if kind == "extra_forbidden":
        return f"{place}: unknown key"
    if kind == "missing":
        return f"{place}: missing"
    if kind == "value_error":
        return f"{place}: {detail['ctx']['error']}"
    return f"{place}: {_requirement(detail, key)}, not {quoted(detail['input'])}"


def _step(entry: int | str) -> str:
    """One step into a list (counted from 1) or a table."""
    return f", entry {entry + 1}" if isinstance(entry, int) else f', key "{ascii(entry)[1:-1]}"'


def _requirement(detail: ErrorDetails, key: str) -> str:
    """Say what the value has to be."""
    kind = detail["type"]
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(key) or f"must match {detail['ctx']['pattern']}"
    if kind == "literal_error":
        return f"must be {detail['ctx']['expected']}".replace("'", '"')
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**detail.get("ctx", {}))
    return "must be " + detail["msg"].removeprefix("Input should be").removeprefix("String should be").strip()

"""Turn what pydantic finds wrong in a table into sentences that name table and key and say what to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pytest_rknpu.inventory.wording import did_you_mean, quoted

# pydantic's error type -> what the key has to be. What is not here is told in pydantic's own words.
_EXPECTED: Mapping[str, str] = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "tuple_type": "must be a list",
}

# A pattern says little to the reader: what it means, by key.
_PATTERNS: Mapping[str, str] = {
    "name": "must be lower-case letters, digits, `_`, `.` and `-`, and begin with a letter or digit",
    "tags": "must be lower-case letters, digits, `_`, `.` and `-`, and begin with a letter or digit",
    "host": "must be a host name, an address or a Host alias of the ssh configuration",
    "user": "must be a plain user name",
    "python": "must be a command or a path without blanks or characters special to a shell",
    "runtime_version": 'must be a version such as "2.3.2"',
    "driver_version": 'must be a version such as "0.9.8"',
    "note": "must have no control characters but line breaks",
    "library": "must be a path that does not begin with `-` and has no control characters",
    "ssh_config": "must be a path that does not begin with `-` and has no control characters",
}


def heading(number: int, name: object) -> str:
    """Name a table: its number in the file, counted from 1, and its name where it has one."""
    return f"[[board]] {number}" + (f" ({quoted(name)})" if isinstance(name, str) else "")


def explain_duplicate(number: int, name: str, first: int) -> str:
    """Say that a name was taken."""
    return f'{heading(number, name)}, key "name": taken by [[board]] {first}; names must differ'


def explain_table(
    number: int, table: Mapping[str, Any], error: ValidationError, known: Collection[str]
) -> list[str]:
    """Say all that is wrong with one table, a sentence each."""
    where = heading(number, table.get("name"))
    return [f"{where}, {_sentence(detail, known)}" for detail in error.errors(include_url=False)]


def _sentence(detail: ErrorDetails, known: Collection[str]) -> str:
    """Say one thing that is wrong, beginning with the key."""
    kind, location = detail["type"], detail["loc"]
    if not location:  # a check of the whole table, which names the key itself
        return str(detail["ctx"]["error"])
    key = str(location[0])
    if kind == "extra_forbidden":
        return f"unknown key {quoted(key)}{did_you_mean(key, known) or '; known: ' + ', '.join(known)}"
    if kind == "missing":
        return f'key "{key}": missing'
    if kind == "value_error":
        return f'key "{key}": {detail["ctx"]["error"]}'
    place = f'key "{key}"' + "".join(f", entry {int(entry) + 1}" for entry in location[1:])
    return f"{place}: {_requirement(detail, key)}, not {quoted(detail['input'])}"


def _requirement(detail: ErrorDetails, key: str) -> str:
    """Say what the value has to be."""
    kind = detail["type"]
    if kind == "string_pattern_mismatch":
        return _PATTERNS[key]
    if kind == "literal_error":
        return f"must be {detail['ctx']['expected']}".replace("'", '"')
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    return "must be " + detail["msg"].removeprefix("Input should be").removeprefix("String should be").strip()

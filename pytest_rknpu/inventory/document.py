"""boards.toml as TOML has it: read, and its top level checked, before any table is looked at."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.wording import did_you_mean, quoted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse(path: Path) -> dict[str, Any]:
    """Read the text as TOML."""
    try:
        text = _bytes_of(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file; `rknpu init` writes a starter boards.toml") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8 text") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise ConfigurationError(f"{path}: not valid TOML: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and integers too long for Python
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from None


def _bytes_of(path: Path) -> bytes:
    """What is in the file, which may be a device that never ends."""
    with path.open("rb") as file:
        data = file.read(_LARGEST_BYTES + 1)
    if len(data) > _LARGEST_BYTES:
        raise ConfigurationError(f"{path}: has more than {_LARGEST_BYTES >> 20} MiB; is it a boards.toml?")
    return data


_LARGEST_BYTES = 16 * 2**20

_TABLES = ("board", "model", "budget")


def _listed(tables: Sequence[str]) -> str:
    return " and ".join(f"[[{table}]]" for table in tables)


def board_tables(path: Path, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Take the ``[[board]]`` tables out of the document and refuse what is unknown at its top level."""
    for key in document:
        if key not in _TABLES:
            hint = did_you_mean(key, _TABLES) or f"; only {_listed(_TABLES)} tables are read"
            raise ConfigurationError(f"{path}: unknown top-level key {quoted(key)}{hint}")
    tables = document.get("board", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError(f"{path}: each board is a table that starts with [[board]], in two brackets")
    if not tables:
        raise ConfigurationError(
            f"{path}: names no board; add a [[board]] table (`rknpu init` writes a starter)"
        )
    return tables

"""What the Tab key offers where an option takes a board, a SoC, a requirement or a model.

Somebody waits at the keyboard: nothing here imports pytest or numpy, and whatever is wrong with a
file is for the command itself to say; then nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand

import pytest_rknpu
from pytest_rknpu.cli.shipped import boards_file_in_use, working_folder
from pytest_rknpu.errors import RknpuError

_PACKAGE = Path(pytest_rknpu.__file__).parent


def boards(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the boards of the file that the command line names, or that is used without one."""
    return _beginning(incomplete, _names("board", ctx.params.get("boards_file")))


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of that file's ``[[model]]`` tables."""
    return _beginning(incomplete, _names("model", ctx.params.get("boards_file")))


def socs(incomplete: str) -> list[str]:
    """Every known SoC."""
    from pytest_rknpu.inventory.socs import SOCS

    return _beginning(incomplete, SOCS)


def requirements(incomplete: str) -> list[str]:
    """Ids of the catalogue, which is read without the room that it is in: that imports pytest."""
    import runpy

    catalogue = runpy.run_path(str(_PACKAGE / "verdict" / "requirements.py"))["REQUIREMENTS"]
    return _beginning(incomplete, catalogue)


def _beginning(incomplete: str, words: Sequence[str] | Mapping[str, object]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _names(kind: str, named: object) -> list[str]:
    """The names of one kind of table, as TOML has them: nothing else of the file is looked at."""
    from pytest_rknpu.inventory.document import parse

    try:
        file = Path(str(named)) if named else boards_file_in_use(working_folder())
        tables = parse(file).get(kind)
    except RknpuError:
        return []
    tables = [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    return [name for table in tables if isinstance(name := table.get("name"), str)]


@dataclass(frozen=True)
class _Word:
    """What typer expects of an entry: it has a class of its own for it, at another place in each version."""

    value: str
    help: str | None = None
    type: str = "plain"


#: Options of the plugin that `rknpu run` hands on, with what they take: words to offer, or None for anything.
RUN_OPTIONS: Mapping[str, Callable[[str, object], Sequence[str]] | None] = MappingProxyType(
    {
        "--boards": None,
        "--board": lambda incomplete, file: _beginning(incomplete, _names("board", file)),
        "--soc": lambda incomplete, _: socs(incomplete),
        "--tag": None,
        "--requirement": lambda incomplete, _: requirements(incomplete),
        "--rknpu-per": lambda incomplete, _: _beginning(incomplete, ("board", "soc")),
        "--rknpu-only": None,
        "--rknpu-report": None,
        "--rknpu-seed": None,
        "--rknpu-effort": lambda incomplete, _: _beginning(incomplete, ("quick", "normal", "thorough")),
        "--rknpu-fault": None,
        "--rknpu-latency-model": None,
        "--rknpu-progress": lambda incomplete, _: _beginning(incomplete, ("auto", "off")),
        "--rknpu-baseline": None,
        "--rknpu-waivers": None,
        "--rknpu-losses": None,
        "--rknpu-durations": None,
        "--rknpu-patience": None,
        "--rknpu-wait": None,
    }
)


def run_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """What the option before takes, on a command line that is handed to pytest and that typer cannot read."""
    words = [word for word in ctx.params.get("arguments") or () if word != "="]  # bash cuts at "="
    offer = RUN_OPTIONS.get(words[-1]) if words else None
    return list(offer(incomplete, _value_of("--boards", words))) if offer is not None else []


def _value_of(option: str, words: Sequence[str]) -> str | None:
    """The last value that an option was given, ``--option value`` or ``--option=value``."""
    values = list(_values_of(option, words))
    return values[-1] if values else None


def _values_of(option: str, words: Sequence[str]) -> Iterator[str]:
    for position, word in enumerate(words):
        if word == option and position + 1 < len(words):
            yield words[position + 1]
        elif word.startswith(f"{option}="):
            yield word.partition("=")[2]


class RunCommand(TyperCommand):
    """`rknpu run`, which has no options of its own: what begins with a dash is one of the plugin's."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """See click.Command."""
        own: list[Any] = [_Word(option) for option in RUN_OPTIONS if option.startswith(incomplete)]
        return [*own, *super().shell_complete(ctx, incomplete)]

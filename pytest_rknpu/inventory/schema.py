"""What boards.toml may say, as a pydantic model, and `load_boards`, which reads it.

A file is a list of ``[[board]]`` tables and nothing else. Whatever is wrong with it is a ConfigurationError
that names file, table and key, before anything is touched. What the file says ends up in argument vectors (of
ssh and python), so words that ssh or a remote shell could take for more than a word are refused here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.explain import explain_duplicate, explain_table
from pytest_rknpu.inventory.socs import SOCS, SoC, find_soc
from pytest_rknpu.inventory.wording import did_you_mean, quoted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Runtime = Literal["emulator", "simulator", "librknnrt"]
Transport = Literal["local", "ssh"]
Evidence = Literal["hardware", "simulator", "emulator"]

_EVIDENCE: Mapping[str, Evidence] = {
    "emulator": "emulator",
    "simulator": "simulator",
    "librknnrt": "hardware",
}

# Words that reach an argument vector: no blank, no quote, nothing that a shell expands, no leading dash (ssh
# takes that for an option), no `//` (execnet's separator).
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=64)]
HostName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9:][A-Za-z0-9_.:%-]*$", max_length=255)]
UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=64)]
Command = Annotated[
    str, StringConstraints(pattern=r"^/?[A-Za-z0-9_.][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*$", max_length=4096)
]
File = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f-][^\x00-\x1f]*$", max_length=4096)]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$", max_length=2000)]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+([a-z][0-9]+)?$", max_length=32)]
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=64)]


class Board(BaseModel):
    """One ``[[board]]`` table. Keys that its runtime or transport cannot use are refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name = Field(
        description="What options, node ids, reports and JUnit files call the board: lower-case letters, "
        "digits, `_`, `.` and `-`, unique in the file, and not the name of another SoC.",
        examples=["orange-pi-5-plus"],
    )
    soc: str = Field(
        description="The SoC, in any case of letters: " + ", ".join(sorted(SOCS)) + ", or the alias "
        "rk3588s. VER-02 compares it with the board's device tree.",
        examples=["rk3588"],
    )
    runtime: Runtime = Field(
        description="What answers: `emulator` (this package's software board), `simulator` (RKNN-Toolkit2's "
        "simulator on this host), `librknnrt` (the vendor's runtime on a real board; librknnmrt on the "
        "RV1103 and RV1106 families; the default where there is a `host`).",
        examples=["librknnrt"],
    )
    transport: Transport | None = Field(
        default=None,
        description="How to reach a real board: `ssh` (the default where there is a `host`), or `local` if "
        "pytest runs on the board itself.",
        examples=["ssh"],
    )
    host: HostName | None = Field(
        default=None,
        description="Host name, address, or Host alias of the ssh configuration.",
        examples=["192.0.2.7"],
    )
    user: UserName | None = Field(
        default=None,
        description="User to log in as; ssh's own default where it is left out.",
        examples=["root"],
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="ssh port; ssh's own default where it is left out.",
        examples=[2222],
    )
    ssh_config: File | None = Field(
        default=None,
        description="ssh configuration file to use instead of the user's; a relative path starts at the "
        "folder of boards.toml.",
        examples=["farm/ssh_config"],
    )
    python: Command = Field(
        default="python3",
        description="Python 3.8 or newer on the board: a command, or a path without blanks.",
        examples=["/usr/bin/python3.9"],
    )
    library: File | None = Field(
        default=None,
        description="Runtime library on the board: a path, or a file name to look for in the usual folders. "
        "Default: librknnrt.so, on the RV1103 and RV1106 families librknnmrt.so.",
        examples=["/opt/rknn-2.3.2/librknnrt.so"],
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        description="Seed of the emulator's cache evictions and faults; without it the run's seed.",
        examples=[7],
    )
    faults: tuple[str, ...] = Field(
        default=(),
        description="Faults that the emulator is to have, by name (some with `:key=value` behind it), to see "
        "which requirement catches them.",
        examples=[["sync-to-device-dropped"]],
    )
    runtime_version: Version | None = Field(
        default=None,
        description="Runtime version that the emulator plays; it is reported as `emulated VERSION`.",
        examples=["1.6.0"],
    )
    driver_version: Version | None = Field(
        default=None,
        description="Driver version that the emulator plays; it is reported as `emulated VERSION`.",
        examples=["0.9.8"],
    )
    tags: tuple[Tag, ...] = Field(
        default=(), description="Words of your own, shown in reports.", examples=[["lab-2"]]
    )
    note: Text | None = Field(
        default=None, description="Anything a reader should know.", examples=["no heat sink"]
    )

    @model_validator(mode="before")
    @classmethod
    def _host_means_ssh(cls, table: dict[str, Any]) -> dict[str, Any]:
        """A table with a host is a real board over ssh: three lines describe it."""
        if "host" not in table:
            return table
        table = {"runtime": "librknnrt", **table}
        return {"transport": "ssh", **table} if table["runtime"] == "librknnrt" else table

    @field_validator("faults", "tags", mode="before")
    @classmethod
    def _list_as_tuple(cls, value: object) -> object:
        """TOML has lists; strict mode wants the tuple that a frozen board holds."""
        return tuple(value) if isinstance(value, list) else value

    @field_validator("soc")
    @classmethod
    def _known_soc(cls, value: str) -> str:
        try:
            return find_soc(value).name
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    @field_validator("faults")
    @classmethod
    def _known_faults(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value:
            _refuse_unknown_faults(value)
        return value

    @model_validator(mode="after")
    def _keys_fit(self) -> Board:
        """Refuse keys that this runtime or transport has no use for, and ask for those it needs."""
        for key in sorted(self.model_fields_set):
            reason = _out_of_place(self, key)
            if reason:
                raise ValueError(f'key "{key}": {reason}')
        if self.runtime == "librknnrt" and self.transport is None:
            raise ValueError('key "transport": missing; a real board needs transport = "ssh" or "local"')
        if self.transport == "ssh" and self.host is None:
            raise ValueError('key "host": missing; transport = "ssh" needs it')
        if _names_another_soc(self):
            raise ValueError(f'key "name": {quoted(self.name)} is another SoC than this board\'s {self.soc}')
        return self

    @property
    def evidence(self) -> Evidence:
        """The kind of evidence that a result of this board is. Nothing but ``hardware`` speaks of silicon."""
        return _EVIDENCE[self.runtime]

    @property
    def chip(self) -> SoC:
        """The row of the SoC table."""
        return SOCS[self.soc]

    @property
    def library_path(self) -> str:
        """What the agent on a real board is told to load: a path, or a file name to look for."""
        return self.library or f"{self.chip.runtime}.so"

    def lease_key(self, file: Path) -> str:
        """Name the thing that only one holder may use.

        That is the machine, for a real board: two files that name one host share its lease, and two users of
        one host do too. A board in software belongs to its file.
        """
        if self.transport == "local":
            return "local"
        if self.transport == "ssh":
            return f"ssh:{(self.host or '').lower()}:{self.port or 22}"
        return f"{self.runtime}:{file.resolve()}:{self.name}"


_ALLOWED_ON: Mapping[str, tuple[str, str]] = {
    # key: (attribute and value it needs), as `Board._keys_fit` checks and docs/boards.md prints
    **dict.fromkeys(("transport", "library"), ("runtime", "librknnrt")),
    **dict.fromkeys(("host", "user", "port", "ssh_config", "python"), ("transport", "ssh")),
    **dict.fromkeys(("seed", "faults", "runtime_version", "driver_version"), ("runtime", "emulator")),
}


def only_with(key: str) -> tuple[str, str] | None:
    """Return the (key, value) without which ``key`` is refused, or None where it always fits."""
    return _ALLOWED_ON.get(key)


def _out_of_place(board: Board, key: str) -> str | None:
    """Say why ``key`` does not belong on this board, or None."""
    need = only_with(key)
    if need is None:
        return None
    needed_key, needed_value = need
    actual = getattr(board, needed_key)
    if actual == needed_value:
        return None
    has = f'has {needed_key} = "{actual}"' if actual is not None else f"has no {needed_key}"
    return f'only for {needed_key} = "{needed_value}", but this board {has}; remove it'


def _names_another_soc(board: Board) -> bool:
    """Tell whether the board is called like a SoC that it is not: its results would be read wrongly."""
    try:
        return find_soc(board.name).name != board.soc
    except ConfigurationError:
        return False


def _refuse_unknown_faults(chosen: tuple[str, ...]) -> None:
    """Check faults, ``name`` or ``name:key=value,...``. The emulator is imported only where there is one."""
    from pytest_rknpu.emulator.faults import FAULTS, parse_faults

    for fault in chosen:
        name = fault.partition(":")[0]
        if name not in FAULTS:
            known = ", ".join(sorted(FAULTS))
            hint = did_you_mean(name, FAULTS) or f"; known: {known}"
            raise ValueError(f"unknown fault {quoted(name)}{hint}")
    try:
        parse_faults(chosen)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class BoardsFile:
    """A boards.toml that was read and found right; boards in the file's order."""

    path: Path
    boards: tuple[Board, ...]


def load_boards(path: Path | str) -> BoardsFile:
    """Read a boards.toml.

    Raises ConfigurationError, and nothing else, for whatever is wrong with it: not readable, not UTF-8, not
    TOML (with the line), no board, unknown or misplaced keys, wrong types and values, two boards of one name.
    """
    path = Path(path)
    tables = _board_tables(path, _parse(path))
    boards: list[Board] = []
    problems: list[str] = []
    for number, table in enumerate(tables, start=1):
        try:
            boards.append(_absolute_paths(Board.model_validate(table), path))
        except ValidationError as error:
            problems += explain_table(number, table, error, Board.model_fields)
    problems += _duplicates(tables)
    if problems:
        raise ConfigurationError(f"{path}: " + "; ".join(problems))
    return BoardsFile(path=path, boards=tuple(boards))


def _parse(path: Path) -> dict[str, Any]:
    """Read the text as TOML."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
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


def _board_tables(path: Path, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Take the ``[[board]]`` tables out of the document and refuse everything else at its top level."""
    for key in document:
        if key != "board":
            hint = did_you_mean(key, ["board"]) or "; only [[board]] tables are read"
            raise ConfigurationError(f"{path}: unknown top-level key {quoted(key)}{hint}")
    tables = document.get("board", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError(f"{path}: each board is a table that starts with [[board]], in two brackets")
    if not tables:
        raise ConfigurationError(
            f"{path}: names no board; add a [[board]] table (`rknpu init` writes a starter)"
        )
    return tables


def _duplicates(tables: list[dict[str, Any]]) -> list[str]:
    """Name boards that have the name of an earlier one."""
    first: dict[str, int] = {}
    problems = []
    for number, table in enumerate(tables, start=1):
        name = table.get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            problems.append(explain_duplicate(number, name, first[name]))
        first.setdefault(name, number)
    return problems


def _absolute_paths(board: Board, path: Path) -> Board:
    """Let a relative ssh_config start at the folder of the file that names it."""
    if board.ssh_config is None:
        return board
    return board.model_copy(
        update={"ssh_config": str(path.parent.absolute() / Path(board.ssh_config).expanduser())}
    )

"""What boards.toml may say, as a pydantic model, and `load_boards`, which reads it.

A file is a list of ``[[board]]`` tables, and of ``[[model]]`` tables (`model_table`). Whatever is wrong with
it is a ConfigurationError that names file, table and key, before anything is touched. What the file says ends
up in argument vectors (of ssh and python), so words that ssh or a remote shell could take for more than a
word are refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.document import board_tables, parse
from pytest_rknpu.inventory.explain import explain_duplicates, explain_table, listed_problems
from pytest_rknpu.inventory.socs import SOCS, SoC, find_soc
from pytest_rknpu.inventory.wording import did_you_mean, quoted
from pytest_rknpu.inventory.words import Command, DeviceId, File, HostName, Name, Tag, Text, UserName, Version

if TYPE_CHECKING:
    from pytest_rknpu.inventory.budget_table import Budget
    from pytest_rknpu.inventory.model_table import ModelTable

Runtime = Literal["emulator", "simulator", "librknnrt", "connected"]
Transport = Literal["local", "ssh"]
Evidence = Literal["hardware", "simulator", "emulator"]

_EVIDENCE: Mapping[str, Evidence] = {
    "emulator": "emulator",
    "simulator": "simulator",
    "librknnrt": "hardware",
    "connected": "hardware",
}


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
        "RV1103 and RV1106 families; the default where there is a `host`), `connected` (a real board "
        "without Python, driven by RKNN-Toolkit2 over adb and rknn_server).",
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
    device_id: DeviceId | None = Field(
        default=None,
        description="Which device of `adb devices` the board is; needed where there are several. Boards in "
        "the network are `address:port`, after `adb connect`.",
        examples=["192.0.2.7:5555"],
    )
    target: str | None = Field(
        default=None,
        description="What RKNN-Toolkit2 is to take the board for, if that is not its `soc`; models are then "
        "built for it.",
        examples=["rk3566"],
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
    latency_model: str | None = Field(
        default=None,
        description="How the emulator takes its time, by name (docs/latency.md), for trying the latency "
        "suite out. Results then say so; without it nothing about time is judged there.",
        examples=["steady"],
    )
    pin: bool = Field(
        default=False,
        description="Pin NPU, DDR and CPU clocks while latency is measured, and put them back (takes root on "
        "the board).",
        examples=[True],
    )
    allow_unpinned: bool = Field(
        default=False,
        description="Judge latency although clocks may move; without it such results are inconclusive.",
        examples=[True],
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

    @field_validator("soc", "target")
    @classmethod
    def _known_soc(cls, value: str | None) -> str | None:
        try:
            return None if value is None else find_soc(value).name
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    @field_validator("faults")
    @classmethod
    def _known_faults(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value:
            _refuse_unknown_faults(value)
        return value

    @field_validator("latency_model")
    @classmethod
    def _known_latency_model(cls, value: str | None) -> str | None:
        if value is not None:
            from pytest_rknpu.emulator.latency import LATENCY_MODELS

            if value not in LATENCY_MODELS:
                known = ", ".join(LATENCY_MODELS)
                hint = did_you_mean(value, LATENCY_MODELS) or f"; known: {known}"
                raise ValueError(f"unknown latency model {quoted(value)}{hint}")
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
    def without_time(self) -> str | None:
        """Why nothing about time can be judged on this board; None where it can."""
        return None if self.latency_model is not None else _WITHOUT_TIME.get(self.runtime)

    @property
    def chip(self) -> SoC:
        """The row of the SoC table."""
        return SOCS[self.soc]

    @property
    def platform(self) -> str:
        """What RKNN-Toolkit2 builds for this board (``target_platform``)."""
        return SOCS[self.target or self.soc].toolkit_platform

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
        if self.runtime == "connected":
            return f"adb:{self.device_id or 'the only device'}"
        return f"{self.runtime}:{file.resolve()}:{self.name}"


_WITHOUT_TIME: Mapping[str, str] = {
    "emulator": "an emulated board takes this host's time, which says nothing of silicon: no latency verdict",
    "simulator": "the simulator takes this host's time, which says nothing of silicon: no latency verdict",
    "connected": "there is no agent on this board that could time a run",
}

_ALLOWED_ON: Mapping[str, tuple[str, str]] = {
    # key: (attribute and value it needs), as `Board._keys_fit` checks and docs/boards.md prints
    **dict.fromkeys(("transport", "library"), ("runtime", "librknnrt")),
    **dict.fromkeys(("host", "user", "port", "ssh_config", "python"), ("transport", "ssh")),
    **dict.fromkeys(("device_id", "target"), ("runtime", "connected")),
    **dict.fromkeys(
        ("seed", "faults", "runtime_version", "driver_version", "latency_model"), ("runtime", "emulator")
    ),
}

WITH_AGENT: Mapping[str, frozenset[str]] = {
    # key: the runtimes whose boards have an agent, which alone can do it
    **dict.fromkeys(("pin", "allow_unpinned"), frozenset({"emulator", "librknnrt"})),
}


def only_with(key: str) -> tuple[str, str] | None:
    """Return the (key, value) without which ``key`` is refused, or None where it always fits."""
    return _ALLOWED_ON.get(key)


def _out_of_place(board: Board, key: str) -> str | None:
    """Say why ``key`` does not belong on this board, or None."""
    if key in WITH_AGENT and board.runtime not in WITH_AGENT[key]:
        return f'not for runtime = "{board.runtime}"; remove it'
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
    """A boards.toml that was read and found right; tables in the file's order.

    ``warnings`` say what was taken although it can hardly be meant.
    """

    path: Path
    boards: tuple[Board, ...]
    models: tuple[ModelTable, ...] = ()
    budgets: tuple[Budget, ...] = ()
    warnings: tuple[str, ...] = ()


def load_boards(path: Path | str) -> BoardsFile:
    """Read a boards.toml.

    Raises ConfigurationError, and nothing else, for whatever is wrong with it: not readable, not UTF-8, not
    TOML (with the line), no board, unknown or misplaced keys, wrong types and values, two boards of one name.
    """
    path = Path(path)
    document = parse(path)
    tables = board_tables(path, document)
    boards: list[Board] = []
    problems: list[str] = []
    for number, table in enumerate(tables, start=1):
        try:
            boards.append(_absolute_paths(Board.model_validate(table), path))
        except ValidationError as error:
            problems += explain_table(number, table, error, Board.model_fields)
    problems += explain_duplicates(tables)
    models, model_problems = _models(path, document)
    budgets, warnings, budget_problems = _budgets(document, boards, models)
    problems += model_problems + budget_problems
    if problems:
        raise ConfigurationError(f"{path}: {listed_problems(problems)}")
    return BoardsFile(path, tuple(boards), models, budgets, warnings)


def _budgets(
    document: dict[str, Any], boards: Sequence[Board], models: Sequence[ModelTable]
) -> tuple[tuple[Budget, ...], tuple[str, ...], list[str]]:
    """The [[budget]] tables, what is odd about them, and what is wrong with them."""
    if "budget" not in document:
        return (), (), []
    from pytest_rknpu.inventory.budgets import implausible, read_budgets

    budgets, problems = read_budgets(document["budget"], boards, [model.name for model in models])
    return budgets, tuple(implausible(budgets)), problems


def _models(path: Path, document: dict[str, Any]) -> tuple[tuple[ModelTable, ...], list[str]]:
    """The [[model]] tables, and what is wrong with them."""
    if "model" not in document:
        return (), []
    from pytest_rknpu.inventory.model_files import read_models

    return read_models(path, document["model"])


def _absolute_paths(board: Board, path: Path) -> Board:
    """Let a relative ssh_config start at the folder of the file that names it."""
    if board.ssh_config is None:
        return board
    return board.model_copy(
        update={"ssh_config": str(path.parent.absolute() / Path(board.ssh_config).expanduser())}
    )

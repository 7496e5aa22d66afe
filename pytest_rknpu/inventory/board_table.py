"""What a ``[[board]]`` table of boards.toml may say, as a pydantic model.

What it says ends up in argument vectors (of ssh and python), so words that ssh or a remote shell could take
for more than a word are refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.key_rules import MEANS_TRANSPORT, out_of_place
from pytest_rknpu.inventory.power_table import Power, power_from
from pytest_rknpu.inventory.socs import SOCS, SoC, find_soc
from pytest_rknpu.inventory.wording import did_you_mean, quoted
from pytest_rknpu.inventory.words import (
    Address,
    Command,
    DeviceId,
    File,
    HostName,
    JumpHost,
    Name,
    PlaceName,
    TagKey,
    TagValue,
    Text,
    UserName,
    Version,
)

Runtime = Literal["emulator", "simulator", "librknnrt", "connected"]
Transport = Literal["local", "ssh", "adb", "labgrid"]
HostKey = Literal["check", "accept-new", "unchecked"]
Evidence = Literal["hardware", "vendor-runtime", "simulator", "emulator"]

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
        description="How to reach a real board: `ssh` (the default where there is a `host`), `adb` (a "
        "board whose adb shell has Python; the default where there is a `serial`), `labgrid` (ssh to a place "
        "of a labgrid farm; the default where there is a `place` or `filter`), or `local` if pytest runs on "
        "the board itself. An emulated board with a transport is behind this host's own sshd.",
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
    key: File | None = Field(
        default=None,
        description="Private key to log in with, and no other; a relative path starts at the folder of "
        "boards.toml.",
        examples=["farm/id_ed25519"],
    )
    jump: JumpHost | None = Field(
        default=None,
        description="Jump host on the way to the board, `host`, `user@host` or `user@host:port`. Its host "
        "key is always checked.",
        examples=["lab@bastion.example"],
    )
    host_key: HostKey = Field(
        default="check",
        description="`check`: the board's host key must be known. `accept-new`: a new one is taken and "
        "remembered, a changed one refused. `unchecked`: anybody may answer. Every run says so if it is not "
        "`check`.",
        examples=["accept-new"],
    )
    sudo: bool = Field(
        default=False,
        description="Run Python on the board as root, by `sudo -n`: sudo must not ask for a password.",
        examples=[True],
    )
    serial: DeviceId | None = Field(
        default=None,
        description="Which device of `adb devices` the board is; needed where there are several. For a board "
        "in the network `address:port`: `adb connect` is done for it.",
        examples=["192.0.2.7:5555"],
    )
    python: Command = Field(
        default="python3",
        description="Python 3.8 or newer on the board: a command, or a path without blanks.",
        examples=["/usr/bin/python3.9"],
    )
    coordinator: Address | None = Field(
        default=None,
        description="The labgrid coordinator, `host:port`; $LG_COORDINATOR where it is left out "
        "(docs/farms.md).",
        examples=["farm.example:20408"],
    )
    place: PlaceName | None = Field(
        default=None,
        description="The labgrid place that the board is.",
        examples=["rk3588-a"],
    )
    filter: Mapping[TagKey, TagValue] = Field(
        default={},
        description="Instead of `place`: tags that a labgrid place must have. Whichever is free is reserved, "
        "and kept for the session.",
        examples=[{"soc": "rk3588"}],
    )
    places: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="With `filter`, under `--rknpu-per soc` and `-n`: how many such places a run may hold "
        "at once. Default: one.",
        examples=[4],
    )
    library: File | None = Field(
        default=None,
        description="Runtime library on the board: a path, or a file name to look for in the usual folders. "
        "Default: librknnrt.so, on the RV1103 and RV1106 families librknnmrt.so.",
        examples=["/opt/rknn-2.3.2/librknnrt.so"],
    )
    stand_in: bool = Field(
        default=False,
        description="Beneath the vendor's runtime is a stand-in for the driver and the NPU, not silicon "
        "(docs/vendor-rig.md): results are called `vendor-runtime`. A stand-in says what it is; a board "
        "where it does, or does not, against this key is refused.",
        examples=[True],
    )
    model_cache: File | None = Field(
        default=None,
        description="Folder on the board where models are kept. Default: ~/.cache/pytest-rknpu/models, and "
        "where that cannot be written to, /data/local/tmp or the folder for temporary files.",
        examples=["/userdata/rknpu-models"],
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
    power: Power | None = Field(
        default=None,
        description="How to switch the board off and on where it hangs (docs/recovery.md): `cycle`, a "
        "program and its arguments, run without a shell; `wait_s`, seconds until the board has to answer "
        "again (120); `limit_s`, seconds for the command itself (60). "
        'Or `"labgrid"`: by the power driver of its labgrid place.',
        examples=[{"cycle": ["uhubctl", "-l", "1-1", "-p", "2", "-a", "cycle"], "wait_s": 60}],
    )
    pool: Name | None = Field(
        default=None,
        description="Boards of one pool stand for each other under `--rknpu-per soc`; without it those of a "
        "SoC that are described alike, tags included (docs/farms.md).",
        examples=["rk3588-bsp-1.3"],
    )
    tags: Mapping[TagKey, TagValue] = Field(
        default={},
        description="Words of your own, by which `--tag KEY=VALUE` chooses boards.",
        examples=[{"site": "lab-2"}],
    )
    note: Text | None = Field(
        default=None, description="Anything a reader should know.", examples=["no heat sink"]
    )

    @model_validator(mode="before")
    @classmethod
    def _address_means_transport(cls, table: dict[str, Any]) -> dict[str, Any]:
        """A real board with a host is reached over ssh, one with a place through its farm."""
        transport = next((way for key, way in MEANS_TRANSPORT.items() if key in table), None)
        if transport is None:
            return table
        table = {"runtime": "librknnrt", **table}
        return {"transport": transport, **table} if table["runtime"] == "librknnrt" else table

    @field_validator("power", mode="before")
    @classmethod
    def _checked_power(cls, value: object) -> object:
        """Pydantic's own words would repeat what may be a password."""
        return power_from(value)

    @field_validator("faults", mode="before")
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
            reason = out_of_place(key, self)
            if reason:
                raise ValueError(f'key "{key}": {reason}')
        if self.runtime == "librknnrt" and self.transport is None:
            raise ValueError(
                'key "transport": missing; a real board needs transport = "ssh", "adb" or "local"'
            )
        if self.transport == "ssh" and self.host is None:
            raise ValueError('key "host": missing; transport = "ssh" needs it')
        if self.transport == "labgrid" and (self.place is None) is not bool(self.filter):
            raise ValueError('key "place": transport = "labgrid" needs either place or filter')
        if self.places is not None and not self.filter:
            raise ValueError('key "places": only with filter; remove it')
        if self.power == "labgrid" and self.transport != "labgrid":
            raise ValueError('key "power": "labgrid" needs transport = "labgrid"; give a command instead')
        if self.transport == "local" and self.runtime == "emulator":
            raise ValueError('key "transport": an emulated board is local without it; remove it')
        if _names_another_soc(self):
            raise ValueError(f'key "name": {quoted(self.name)} is another SoC than this board\'s {self.soc}')
        return self

    @property
    def evidence(self) -> Evidence:
        """The kind of evidence that a result of this board is. Nothing but ``hardware`` speaks of silicon."""
        return "vendor-runtime" if self.stand_in else _EVIDENCE[self.runtime]

    @property
    def without_time(self) -> str | None:
        """Why nothing about time can be judged on this board; None where it can."""
        if self.latency_model is not None:
            return None
        return _WITHOUT_TIME.get("stand-in" if self.stand_in else self.runtime)

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
        if self.transport == "adb":
            return f"adb:{self.serial or 'the only device'}"
        if self.transport == "labgrid":
            wanted = self.place or " ".join(f"{key}={value}" for key, value in sorted(self.filter.items()))
            return f"labgrid:{self.coordinator or ''}:{wanted}"
        if self.runtime == "connected":
            return f"adb:{self.device_id or 'the only device'}"
        return f"{self.runtime}:{file.resolve()}:{self.name}"


_WITHOUT_TIME: Mapping[str, str] = {
    "emulator": "an emulated board takes this host's time, which says nothing of silicon: no latency verdict",
    "simulator": "the simulator takes this host's time, which says nothing of silicon: no latency verdict",
    "stand-in": "a stand-in takes its host's time, which says nothing of silicon: no latency verdict",
    "connected": "there is no agent on this board that could time a run",
}


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

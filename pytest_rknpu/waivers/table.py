"""What waivers.toml may say, and `load_waivers`, which reads it.

A waiver is a promise to look again: it names one requirement, where it is known to be broken, what the
failure says, why that is accepted, and until when. Whatever would let one cover more than was looked at (no
scope, a pattern that matches everything, no end) is refused when the file is read.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.document import parse
from pytest_rknpu.inventory.explain import explain_table, listed_problems
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.inventory.wording import did_you_mean, quoted
from pytest_rknpu.inventory.words import Text
from pytest_rknpu.verdict import require_known
from pytest_rknpu.waivers.version_range import holds, parse_range

FILE_NAME = "waivers.toml"
LONGEST_DAYS = 366
"""A waiver ends at most so many days after the file is read, so that somebody looks at it each year."""

_VERSIONS: Mapping[str, str] = MappingProxyType(
    {
        "bsp": "bsp",
        "kernel": "kernel",
        "driver": "driver",
        "runtime": "runtime",
        "toolkit": "toolkit",
        "compiler": "model_compiler",
    }
)
"""Key of ``versions`` in the file -> key in a result."""

_LONGEST_PATTERN = 500


class Waiver(BaseModel):
    """One ``[[waiver]]`` table."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    requirement: str = Field(
        description="The one requirement that is known to be broken.", examples=["SYNC-07"]
    )
    board: str | None = Field(
        default=None,
        description="Boards, by name; `*` and `?` stand for any letters.",
        examples=["orange-pi-5*"],
    )
    soc: str | None = Field(default=None, description="Boards with this SoC.", examples=["rk3588"])
    versions: dict[str, str] = Field(
        default_factory=dict,
        description="Ranges of versions, by `bsp`, `kernel`, `driver`, `runtime`, `toolkit`, `compiler`. "
        '"Fails until driver 0.9.8" is `driver = "<0.9.8"`. A version that is not known lies in no range.',
        examples=[{"driver": "<0.9.8"}],
    )
    test: str | None = Field(
        default=None,
        description="Tests, by node id without the bracket; `*` and `?` stand for any letters. Default: all "
        "tests of the requirement.",
        examples=["suites/sync/test_imported.py::*"],
    )
    outcome: Literal["fail", "inconclusive"] = Field(
        default="fail", description="How the test ends.", examples=["inconclusive"]
    )
    message: str = Field(
        description="Regular expression (Python) that is found in the failure's message: another failure "
        "of the same test is not waived.",
        examples=["neighbour .* lost"],
        max_length=_LONGEST_PATTERN,
    )
    reason: Text = Field(
        description="Why that is accepted.", examples=["unaligned import is fixed in driver 0.9.8"]
    )
    link: Text | None = Field(
        default=None, description="Where it is tracked.", examples=["https://tracker.example/NPU-71"]
    )
    expires: date = Field(
        description=f"The last day on which it holds (UTC); at most {LONGEST_DAYS} days ahead.",
        examples=[date(2027, 3, 31)],
    )

    @field_validator("requirement")
    @classmethod
    def _known_requirement(cls, value: str) -> str:
        try:
            return require_known([value], "it")[0]
        except ConfigurationError as error:
            raise ValueError(str(error).removeprefix("it: ")) from None

    @field_validator("soc")
    @classmethod
    def _known_soc(cls, value: str | None) -> str | None:
        try:
            return None if value is None else find_soc(value).name
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    @field_validator("board", "test")
    @classmethod
    def _says_something(cls, value: str | None) -> str | None:
        if value is not None and not re.search(r"[A-Za-z0-9]", value):
            raise ValueError(f"{quoted(value)} is all there is; name what it is about, or leave the key out")
        return value

    @field_validator("versions")
    @classmethod
    def _known_versions(cls, value: dict[str, str]) -> dict[str, str]:
        for key, wanted in value.items():
            if key not in _VERSIONS:
                hint = did_you_mean(key, _VERSIONS) or f"; known: {', '.join(_VERSIONS)}"
                raise ValueError(f"unknown version {quoted(key)}{hint}")
            parse_range(wanted)
        return value

    @field_validator("message")
    @classmethod
    def _is_narrow(cls, value: str) -> str:
        try:
            pattern = re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{quoted(value)} is no regular expression: {error}") from None
        if pattern.search("") or pattern.search("\0"):
            raise ValueError(f"{quoted(value)} is found in any message; say what this failure says")
        return value

    @field_validator("reason")
    @classmethod
    def _has_words(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; say why the failure is accepted")
        return value

    @field_validator("expires")
    @classmethod
    def _ends(cls, value: date) -> date:
        latest = datetime.now(timezone.utc).date() + timedelta(days=LONGEST_DAYS)
        if value > latest:
            raise ValueError(
                f"{value} is too far ahead; {latest} is the latest, so that somebody looks again"
            )
        return value

    @model_validator(mode="after")
    def _has_scope(self) -> Waiver:
        if self.board is None and self.soc is None and not self.versions:
            raise ValueError("it covers every board there is; give board, soc or versions")
        return self

    def expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.expires

    def covers(
        self,
        requirements: tuple[str, ...],
        nodeid: str,
        board: str,
        soc: str,
        versions: Mapping[str, str],
    ) -> bool:
        """Whether a test of ``requirements`` on a board is within the scope, whatever came of it."""
        return (
            self.requirement in requirements
            and (self.board is None or fnmatch.fnmatchcase(board, self.board))
            and (self.soc is None or soc == self.soc)
            and (self.test is None or fnmatch.fnmatchcase(nodeid.partition("[")[0], self.test))
            and all(holds(wanted, versions.get(_VERSIONS[key], "")) for key, wanted in self.versions.items())
        )

    def describes(self, outcome: str, message: str) -> bool:
        """Whether a failure within the scope is the one that is accepted."""
        return outcome == self.outcome and re.search(self.message, message) is not None

    @property
    def scope(self) -> str:
        """The scope in words."""
        parts = [
            f"board {self.board}" if self.board else "",
            f"SoC {self.soc}" if self.soc else "",
            *(f"{key} {wanted}" for key, wanted in self.versions.items()),
            self.test or "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class WaiversFile:
    """A file that was read. ``digest`` is the SHA-256 of its bytes in hexadecimal."""

    path: Path
    waivers: tuple[Waiver, ...]
    digest: str


def load_waivers(path: Path) -> WaiversFile:
    """Read and check a waivers.toml. Raises ConfigurationError that names file, table and key."""
    document = parse(path)
    for key in document:
        if key != "waiver":
            hint = did_you_mean(key, ["waiver"]) or "; only [[waiver]] tables are read"
            raise ConfigurationError(f"{path}: unknown top-level key {quoted(key)}{hint}")
    tables = document.get("waiver", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError(
            f"{path}: each waiver is a table that starts with [[waiver]], in two brackets"
        )
    waivers: list[Waiver] = []
    problems: list[str] = []
    for number, table in enumerate(tables, start=1):
        found = _waiver(number, table, problems)
        if found is not None:
            waivers.append(found)
    if problems:
        raise ConfigurationError(f"{path}: {listed_problems(problems)}")
    return WaiversFile(path, tuple(waivers), hashlib.sha256(path.read_bytes()).hexdigest())


def _waiver(number: int, table: Mapping[str, Any], problems: list[str]) -> Waiver | None:
    try:
        return Waiver.model_validate(table)
    except ValidationError as error:
        problems += explain_table(number, table, error, list(Waiver.model_fields), kind="waiver")
        return None

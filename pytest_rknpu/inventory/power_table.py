"""How a board's power is switched off and on again: the key ``power`` of boards.toml.

The arguments of a command may hold a password. So nothing here repeats them: neither a message nor a
``repr``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_rknpu.inventory.wording import did_you_mean, quoted

LONGEST_SECONDS = 3600.0
_MOST_ARGUMENTS = 100
_EXPECTED = (
    'must be "labgrid" or a table such as { cycle = ["uhubctl", "-l", "1-1", "-a", "cycle"], wait_s = 60 }'
)


class PowerTable(BaseModel):
    """A command, run without a shell, after which the board starts anew."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    cycle: tuple[str, ...] = Field(
        repr=False,
        description="Program and arguments, each a text of its own. No shell: `$`, `*` and `;` mean nothing. "
        "It ends when the board's power is on again, with exit code 0.",
        examples=[["uhubctl", "-l", "1-1", "-p", "2", "-a", "cycle"]],
    )
    wait_s: float = Field(
        default=120.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="Within this time after the command's end the board has to answer again.",
        examples=[60.0],
    )
    limit_s: float = Field(
        default=60.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="How long the command itself may take; then it is ended, with all that it started.",
        examples=[30.0],
    )

    @property
    def program(self) -> str:
        """The name of the program: all of the command that is ever shown.

        What stands behind a blank may be arguments that somebody put into the same string.
        """
        first, *_ = self.cycle[0].split() or [""]
        return first.rpartition("/")[2]


Power = PowerTable | Literal["labgrid"]


def power_from(value: object) -> Power | None:
    """What boards.toml says, checked. Raises ValueError with a sentence that repeats no value."""
    if value is None or isinstance(value, PowerTable):
        return value
    if value == "labgrid":
        return "labgrid"
    if not isinstance(value, Mapping):
        raise ValueError(_EXPECTED)
    fields = PowerTable.model_fields
    for key in value:
        if key not in fields:
            hint = did_you_mean(str(key), fields) or f"; known: {', '.join(fields)}"
            raise ValueError(f"unknown key {quoted(key)}{hint}")
    seconds = {key: _seconds(key, value[key]) for key in ("wait_s", "limit_s") if key in value}
    return PowerTable(cycle=_command(value.get("cycle")), **seconds)


def _command(value: Any) -> tuple[str, ...]:
    texts = (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(a, str) for a in value)
    )
    if not texts or not 0 < len(value) <= _MOST_ARGUMENTS or not value[0]:
        raise ValueError(
            'key "cycle": must be a list of texts, the program and its arguments: no shell splits a line'
        )
    if any("\0" in argument for argument in value):
        raise ValueError('key "cycle": no argument of a program can hold a NUL')
    return tuple(value)


def _seconds(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST_SECONDS:
        raise ValueError(f'key "{key}": must be a number of seconds, above 0 and at most {LONGEST_SECONDS:g}')
    return float(value)

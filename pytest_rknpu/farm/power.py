"""Switching a board off and on again, by the command that boards.toml names or by labgrid's power driver.

Arguments and environment of such a command may hold a password: what is told of it is the name of the
program, its exit code, and what it said with every argument and every secret of the environment blotted out.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol

from pytest_rknpu.errors import BoardError

if TYPE_CHECKING:
    from pytest_rknpu.farm.holding import Lease
    from pytest_rknpu.inventory.power_table import PowerTable
    from pytest_rknpu.inventory.schema import Board

_LAST_LINES = 20
_LONGEST_LINE = 400
_KEPT_BYTES = 16 * 1024
# Shorter ones are words such as "-a" and "1-1", which a message needs.
_SHORTEST_SECRET = 4
_SECRET_NAMES = re.compile(r"pass|secret|token|key|credential|auth", re.IGNORECASE)
_PARTS = re.compile(r"[=:@,\s]+")
_LABGRID_WAIT_S = 120.0


class PowerFailure(BoardError):
    """The command that switches a board failed; the message has what it said."""


class Power(Protocol):
    """What switches one board."""

    @property
    def wait_s(self) -> float:
        """Within so many seconds after `cycle` the board has to be reached again."""

    def __str__(self) -> str:
        """What it is, without any secret."""

    def cycle(self) -> None:
        """Off and on. Raises PowerFailure."""


@dataclass(frozen=True)
class CommandPower:
    """A command, run without a shell; ``extra`` goes into its environment."""

    board: str
    command: Sequence[str] = field(repr=False)
    wait_s: float
    limit_s: float
    shown: str
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.shown

    def cycle(self) -> None:
        """See Power."""
        environment = {**os.environ, **self.extra}
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,  # so that all it starts ends with it; and Ctrl-C is not for it
                )
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "it cannot be run"
                raise PowerFailure(f"board {self.board}: power not cycled: {self.shown}: {reason}") from None
            code = self._wait(process)
            if code != 0:
                why = (
                    f"did not end within {self.limit_s:g} s"
                    if code is None
                    else f"ended with exit code {code}"
                )
                said = blotted(_end_of(output), self.command, environment)
                raise PowerFailure(f"board {self.board}: power not cycled: {self.shown} {why}{_listed(said)}")

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """Its exit code; None where it was ended because its time was over."""
        ends = time.monotonic() + self.limit_s
        try:
            return process.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            return None
        except BaseException:  # Ctrl-C: half a cycle would leave the board without power
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, ends - time.monotonic()))
            raise
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def power_of(board: Board, lease: Lease) -> Power | None:
    """What switches ``board``, None where boards.toml names nothing."""
    if board.power is None:
        return None
    if board.power == "labgrid":
        return _by_labgrid(board, lease)
    return by_command(board.name, board.power)


def by_command(board: str, table: PowerTable) -> CommandPower:
    """The command of boards.toml."""
    return CommandPower(board, table.cycle, table.wait_s, table.limit_s, f"the command {table.program}")


def _by_labgrid(board: Board, lease: Lease) -> Power | None:
    if lease.place is None:
        return None
    command, extra = lease.place.client("power", "cycle")
    return CommandPower(
        board.name, command, _LABGRID_WAIT_S, _LABGRID_WAIT_S, "labgrid's power driver", extra
    )


def blotted(text: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """``text`` without the arguments of ``command``, their parts, and the secrets of an environment.

    What is shorter than four characters stays.
    """
    secrets = {value: f"[${name}]" for name, value in environment.items() if _SECRET_NAMES.search(name)}
    for number, argument in enumerate(command[1:], start=1):
        for part in (argument, *_PARTS.split(argument)):
            secrets.setdefault(part, f"[argument {number}]")
    long = sorted((secret for secret in secrets if len(secret) >= _SHORTEST_SECRET), key=len, reverse=True)
    if not long:
        return text
    return re.sub("|".join(map(re.escape, long)), lambda found: secrets[found[0]], text)


def _end_of(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _KEPT_BYTES))
    return output.read().decode("utf-8", "replace")


def _listed(said: str) -> str:
    lines = [line.rstrip()[:_LONGEST_LINE] for line in said.splitlines() if line.strip()][-_LAST_LINES:]
    return "\n".join(["; it said:", *(f"  {line}" for line in lines)]) if lines else "; it said nothing"

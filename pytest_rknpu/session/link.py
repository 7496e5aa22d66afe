"""The link between a session and an agent: requests and replies of plain data, each by a deadline."""

from __future__ import annotations

import json
from typing import Any, Protocol

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.transport import Gateway

Message = dict[str, Any]


class Link(Protocol):
    """What a session needs of an agent, in whatever language that agent is written."""

    def request(self, message: Message, deadline_s: float) -> Message:
        """Send one request of docs/command-lists.md and return its reply; raises BoardLost."""

    def close(self) -> None:
        """End the agent; safe to call twice."""


class ExecnetLink:
    """A Link to the Python agent, shipped over an execnet gateway."""

    def __init__(self, board_name: str, gateway: Gateway) -> None:
        from pytest_rknpu.agent import bootstrap_source, sources

        self._board_name = board_name
        self._gateway = gateway
        self._channel = gateway.start(bootstrap_source())
        self._channel.send(json.dumps(sources()))

    def request(self, message: Message, deadline_s: float) -> Message:
        """See Link. After a missed deadline the agent is ended: its state is no longer known."""
        name = message["request"]
        try:
            self._channel.send(message)
            reply: Message = self._channel.receive(timeout=deadline_s)
        except self._channel.TimeoutError as error:
            self.close()
            raise BoardLost(
                f"board {self._board_name}: no answer to {name!r} within {deadline_s:g} s (hung NPU, driver "
                f"or link); the agent was ended. Look at the board's kernel log, power-cycle it if it stays "
                "away."
            ) from error
        except (OSError, EOFError, self._channel.RemoteError) as error:
            self.close()
            raise BoardLost(
                f"board {self._board_name}: the agent's process ended during {name!r} ({_reason(error)}). "
                "Look at the board's kernel log for a crash or an out-of-memory kill."
            ) from error
        return reply

    def close(self) -> None:
        """See Link."""
        self._gateway.close()


def _reason(error: BaseException) -> str:
    last = (str(error).strip().splitlines() or [""])[-1]
    return f"{type(error).__name__}: {last}" if last else type(error).__name__

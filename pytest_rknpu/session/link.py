"""The link between a session and an agent: requests and replies of plain data, each by a deadline."""

from __future__ import annotations

import json
import struct
import threading
from typing import Any, Protocol

import execnet

from pytest_rknpu.errors import BoardLost, HarnessError
from pytest_rknpu.transport import Gateway

Message = dict[str, Any]


class Link(Protocol):
    """What a session needs of an agent, in whatever language that agent is written."""

    def request(self, message: Message, deadline_s: float) -> Message:
        """Send one request of docs/command-lists.md and return its reply; raises BoardLost.

        Whatever else interrupts it also ends the link, but for HarnessError: that request was not sent.
        """

    def close(self) -> None:
        """End the agent; safe to call twice."""


class ExecnetLink:
    """A Link to the Python agent, shipped over an execnet gateway."""

    def __init__(self, board_name: str, gateway: Gateway) -> None:
        from pytest_rknpu.agent import bootstrap_source, sources

        self._board_name = board_name
        self._one_at_a_time = threading.Lock()  # else threads of a test would get each other's replies
        self._gateway = gateway
        self._channel = gateway.start(bootstrap_source())
        try:
            self._channel.send(json.dumps(sources()))
        except (OSError, EOFError) as error:
            raise BoardLost(f"board {board_name}: the link ended before the agent started") from error

    def request(self, message: Message, deadline_s: float) -> Message:
        """See Link.

        After a missed deadline the agent is ended: its state is no longer known. So it is after Ctrl-C, or
        the timeout of a test: the reply that is still to come would be taken for that to the next request.
        """
        with self._one_at_a_time:
            return self._request(message, deadline_s)

    def _request(self, message: Message, deadline_s: float) -> Message:
        name = message["request"]
        try:
            self._channel.send(message)
            reply: Message = self._channel.receive(timeout=deadline_s)
        except (execnet.DumpError, struct.error) as error:  # struct.error: more than 2 GiB in one message
            raise HarnessError(
                f"board {self._board_name}: the request {name!r} cannot be sent ({_reason(error)}); it takes "
                "plain data, and less than 2 GiB of it"
            ) from error
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
        except BaseException:
            self.close()
            raise
        return reply

    def close(self) -> None:
        """See Link."""
        self._gateway.close()


def _reason(error: BaseException) -> str:
    last = (str(error).strip().splitlines() or [""])[-1]
    return f"{type(error).__name__}: {last}" if last else type(error).__name__

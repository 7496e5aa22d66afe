"""The link between a session and an agent: requests and replies of plain data, each by a deadline."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import execnet

from pytest_rknpu.errors import BoardLost, HarnessError
from pytest_rknpu.session.allowance import command_at
from pytest_rknpu.session.evidence import attached, kernel_log
from pytest_rknpu.transport import Gateway

Message = dict[str, Any]

# For the agent's sources, some 200 KB, to be taken; and for a farewell.
_SOURCES_SECONDS = 60.0
_CLOSE_SECONDS = 5.0
# For an agent to say what it is at, once the deadline of a request has passed.
_LAST_WORDS_SECONDS = 3.0
# The stack of a crash, and the log's end after it.
_STDERR_LINES = 40
_ATTENDANT_PERIOD_SECONDS = 1.0
_SIGNS_OF_LIFE_PER_SILENCE = 8


class Link(Protocol):
    """What a session needs of an agent, in whatever language that agent is written."""

    def request(self, message: Message, deadline_s: float) -> Message:
        """Send one request of docs/command-lists.md and return its reply; raises BoardLost.

        Whatever else interrupts it also ends the link, but for HarnessError: that request was not sent.
        """

    def give_signs_of_life(self, silence_s: float) -> None:
        """Let an agent that ends after ``silence_s`` know that this host is there, whatever a test does."""

    def cut(self) -> None:
        """End the link at once, also while another thread sends or waits for a reply."""

    def close(self) -> None:
        """End the agent; safe to call twice."""


class ExecnetLink:
    """A Link to the Python agent, shipped over an execnet gateway."""

    def __init__(self, board_name: str, gateway: Gateway) -> None:
        from pytest_rknpu.agent import bootstrap_source, sources

        self._board_name = board_name
        self._one_at_a_time = threading.Lock()  # else threads of a test would get each other's replies
        self._gateway = gateway
        self._sending = _Sending()
        self._closed = threading.Event()
        self._sign_period_s = float("inf")
        self._channel = gateway.start(bootstrap_source())
        threading.Thread(target=self._attend, daemon=True, name=f"attends the link to {board_name}").start()
        try:
            self._send(json.dumps(sources()), _SOURCES_SECONDS)
        except (OSError, EOFError) as error:
            self.close()
            raise BoardLost(f"board {board_name}: the link ended before the agent started") from error

    def request(self, message: Message, deadline_s: float) -> Message:
        """See Link.

        After a missed deadline the agent is ended: its state is no longer known. So it is after Ctrl-C, or
        the timeout of a test: the reply that is still to come would be taken for that to the next request.
        """
        with self._one_at_a_time:
            return self._request(message, deadline_s)

    def give_signs_of_life(self, silence_s: float) -> None:
        """See Link."""
        self._sign_period_s = silence_s / _SIGNS_OF_LIFE_PER_SILENCE

    def _attend(self) -> None:
        """End a sending that takes too long: a pipe that nobody empties holds the sender for ever."""
        signed = time.monotonic()
        while not self._closed.wait(min(_ATTENDANT_PERIOD_SECONDS, self._sign_period_s)):
            if self._sending.is_late():
                self._gateway.kill()
            elif time.monotonic() - signed >= self._sign_period_s:
                with self._sending.if_free() as free, contextlib.suppress(OSError, EOFError):
                    if free:
                        self._channel.send({"request": "alive"})
                        signed = time.monotonic()

    def _request(self, message: Message, deadline_s: float) -> Message:
        name = message["request"]
        try:
            self._send(message, deadline_s)
            reply: Message = self._channel.receive(timeout=deadline_s)
        except (execnet.DumpError, struct.error) as error:  # struct.error: more than 2 GiB in one message
            raise HarnessError(
                f"board {self._board_name}: the request {name!r} cannot be sent ({_reason(error)}); it takes "
                "plain data, and less than 2 GiB of it"
            ) from error
        except self._channel.TimeoutError as error:
            told = self._last_words()
            if told is None:
                self._gateway.kill()  # else a farewell might wait for a pipe that nobody empties
            self.close()
            raise BoardLost(self._late(message, deadline_s, told)) from error
        except (OSError, EOFError, self._channel.RemoteError) as error:
            self.close()
            raise BoardLost(self._ended(name, error)) from error
        except BaseException:
            self.close()
            raise
        return reply

    def _send(self, message: Message | str, deadline_s: float) -> None:
        with self._sending.until(deadline_s):
            try:
                self._channel.send(message)
            except (execnet.DumpError, struct.error):  # before anything was written
                raise
            except BaseException:
                self._gateway.kill()  # a part is on its way: no farewell can follow
                raise

    def _last_words(self) -> Message | None:
        """What the agent says of the request that it is at; None where it says nothing."""
        try:
            self._send({"request": "last_words"}, _LAST_WORDS_SECONDS)
            told: Message = self._channel.receive(timeout=_LAST_WORDS_SECONDS)
        except (OSError, EOFError, self._channel.RemoteError, self._channel.TimeoutError):
            return None
        return told

    def _late(self, message: Message, deadline_s: float, told: Message | None) -> str:
        start = f"board {self._board_name}: no answer to {message['request']!r} within {deadline_s:g} s"
        remedy = "\nLook at the board's kernel log, power-cycle it if it stays away."
        if told is None:
            return (
                f"{start}, nor when its agent was asked what it is at (the link is dead, or the agent "
                f"frozen); the agent was ended{remedy}{self._stderr()}"
            )
        error = told.get("error") or {}
        if error.get("kind") != "hung":  # it came to its end after all
            return f"{start}; the answer came just after that. Give a longer deadline_s if that is its pace."
        return (
            f"{start}: the board answers, yet {_place(message, error.get('at', []))} does not return "
            f"(hung NPU or driver); the agent was ended{remedy}"
            f"{attached('runtime log', str(told.get('log', '')))}{kernel_log(told.get('kernel_log'))}"
            f"{self._stderr()}"
        )

    def _ended(self, name: str, error: BaseException) -> str:
        if self._sending.was_late:
            return (
                f"board {self._board_name}: the request {name!r} could not be sent by its deadline: nobody "
                f"reads at the other end (the link is dead, or the agent frozen).{self._stderr()}"
            )
        reason = "" if isinstance(error, EOFError) else f" ({_reason(error)})"
        return (
            f"board {self._board_name}: the agent's process ended during {name!r}{reason}\n"
            f"Look at the board's kernel log for a crash or an out-of-memory kill.{self._stderr()}"
        )

    def _stderr(self) -> str:
        """What agent and link wrote to stderr; to be called once the link is closed."""
        return attached("stderr of agent and link", self._gateway.last_words(), _STDERR_LINES)

    def cut(self) -> None:
        """See Link."""
        self._gateway.kill()

    def close(self) -> None:
        """See Link."""
        self._closed.set()
        limit = threading.Timer(_CLOSE_SECONDS, self._gateway.kill)  # a farewell has a deadline too
        limit.daemon = True
        limit.start()
        try:
            self._gateway.close()
        finally:
            limit.cancel()


class _Sending:
    """Whether a message is being written to the link, and until when that may take."""

    def __init__(self) -> None:
        self.was_late = False
        self._lock = threading.Lock()
        self._ends: float | None = None

    @contextmanager
    def until(self, deadline_s: float) -> Iterator[None]:
        """In the block a message is written. Raises OSError where another one is, for too long."""
        if not self._lock.acquire(timeout=deadline_s):
            self.was_late = True
            raise OSError("another message is still on its way")
        try:
            self._ends = time.monotonic() + deadline_s
            yield
        finally:
            self._ends = None
            self._lock.release()

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Whether nothing is being written; if so, nothing else is in the block."""
        free = self._lock.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._lock.release()

    def is_late(self) -> bool:
        """Whether a message is being written for too long."""
        ends = self._ends
        late = ends is not None and time.monotonic() > ends
        self.was_late = self.was_late or late
        return late


def _reason(error: BaseException) -> str:
    last = (str(error).strip().splitlines() or [""])[-1]
    return f"{type(error).__name__}: {last}" if last else type(error).__name__


def _place(message: Message, at: list[int]) -> str:
    """The command of a request that the agent is at, by its path and name."""
    if message["request"] != "execute" or not at:
        return f"the request {message['request']!r}"
    operation = command_at(message["program"], at)
    return f"command {'.'.join(map(str, at))} ({operation})" if operation else f"command {at}"

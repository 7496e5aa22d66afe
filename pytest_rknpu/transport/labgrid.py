"""A place of a labgrid farm: held by a process of its own (`pytest_rknpu.keeper`), and reached over ssh.

The board that comes out is one over ssh like any other, with the address that the place's NetworkService has.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest_rknpu
from pytest_rknpu.errors import BoardError, LeaseLost, LeaseTimeout

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

PYTHON_VARIABLE = "RKNPU_LABGRID_PYTHON"
_COORDINATOR_VARIABLE = "LG_COORDINATOR"
_DEFAULT_COORDINATOR = "127.0.0.1:20408"
_INSTALL = "pipx install 'labgrid>=25'"

# Longer than the keeper takes at worst to find out, by its own limits.
_ANSWER_SECONDS = 90.0
_START_SECONDS = 120.0
_END_SECONDS = 60.0

# The keeper is a room of this package, run by another Python, which finds that room and nothing else of it.
_BOOTSTRAP = """
import importlib.util, runpy, sys
sys.path = [entry for entry in sys.path if entry]
spec = importlib.util.spec_from_file_location(
    "pytest_rknpu", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
sys.modules["pytest_rknpu"] = importlib.util.module_from_spec(spec)
runpy.run_module("pytest_rknpu.keeper", run_name="__main__")
"""


def labgrid_python() -> str:
    """The Python that labgrid is installed for.

    That is $RKNPU_LABGRID_PYTHON, or this one, or the one beside the labgrid-client that is on the PATH.
    Raises BoardError with the command that installs it.
    """
    chosen = os.environ.get(PYTHON_VARIABLE)
    if chosen:
        return chosen
    found = importlib.util.find_spec("labgrid")
    if found is not None and found.origin is not None:
        return sys.executable
    client = shutil.which("labgrid-client")
    if client is not None:
        for name in ("python", "python3"):
            beside = Path(client).resolve().with_name(name)
            if os.access(beside, os.X_OK):
                return str(beside)
    raise BoardError(
        f"labgrid is not installed; install it with: {_INSTALL} (it cannot share an environment with "
        f"RKNN-Toolkit2), or name its Python in ${PYTHON_VARIABLE}"
    )


def coordinator_of(board: Board) -> str:
    """The address of the coordinator of a board of a labgrid farm, host:port."""
    return board.coordinator or os.environ.get(_COORDINATOR_VARIABLE) or _DEFAULT_COORDINATOR


class HeldPlace:
    """A place that is held until the block of `hold_place` ends."""

    def __init__(self, keeper: _Keeper, board: Board, name: str, service: Mapping[str, Any]) -> None:
        self.name = name
        """What the coordinator calls the place."""
        self.board = _at(board, name, service)
        """The board as one over ssh, under the name that boards.toml gives it."""
        self.found = bool(board.filter)
        """Whether it is a place that a filter found, and not one that boards.toml names."""
        self._keeper = keeper

    def client(self, *arguments: str) -> tuple[list[str], dict[str, str]]:
        """A command of labgrid-client for this place, with what it needs in its environment to act for us."""
        wanted = self._keeper.wanted
        host, _, user = wanted["identity"].partition("/")
        command = [
            self._keeper.python,
            "-m",
            "labgrid.remote.client",
            "-x",
            wanted["address"],
            "-p",
            self.name,
        ]
        return [*command, *arguments], {"LG_HOSTNAME": host, "LG_USERNAME": user}

    def check(self) -> None:
        """Ask the coordinator whether it is still held by us. Raises LeaseLost."""
        self._keeper.check()

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call ``tell``, from another thread, as soon as the place is lost; at once if it is already."""
        self._keeper.when_lost(tell)


@contextmanager
def hold_place(
    boards: Sequence[Board], *, run: str, wait_s: float, tell: Callable[[str], None]
) -> Iterator[HeldPlace]:
    """Hold the first of ``boards`` that is free, all of one coordinator, or what a board's filter asks for.

    ``tell`` gets one message if there is somebody to wait for; ``run`` is shown to others who wait for us.
    Raises LeaseTimeout that names the holders after ``wait_s`` seconds, BoardError where the coordinator
    cannot be reached or has no such place.
    """
    by_place = {board.place: board for board in boards if board.place is not None}
    wanted = {
        "address": coordinator_of(boards[0]),
        "identity": _identity(run),
        "own": f".{os.getpid()}.{_plain(run)}.",
        "siblings": f".{_plain(run)}.",
        "places": list(by_place),
        "filter": {} if by_place else dict(boards[0].filter),
        "wait_s": wait_s,
    }
    names = ", ".join(board.name for board in boards)
    keeper = _Keeper(f"board {names} of the labgrid coordinator {wanted['address']}", wanted)
    try:
        place, service = keeper.held(wait_s, tell)
        yield HeldPlace(keeper, by_place.get(place, boards[0]), place, service)
    finally:
        keeper.end()


class _Keeper:
    """The process that holds a place for us."""

    def __init__(self, what: str, wanted: Mapping[str, Any]) -> None:
        self.wanted = wanted
        self.python = labgrid_python()
        self._what = what
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._process = subprocess.Popen(
            [self.python, "-c", _BOOTSTRAP, str(Path(pytest_rknpu.__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is not for it: a test may still be cleaning up
        )
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._lost: str | None = None
        self._ended = False
        self._listeners: list[Callable[[], None]] = []
        self._write(json.dumps(wanted))
        threading.Thread(target=self._read, daemon=True, name=f"keeper of {what}").start()

    def held(self, wait_s: float, tell: Callable[[str], None]) -> tuple[str, Mapping[str, Any]]:
        """Wait for a place: its name, and its service."""
        while True:
            event = self._next(wait_s + _START_SECONDS)
            if event["event"] == "held":
                return event["place"], event["service"]
            if event["event"] == "waiting":
                tell(f"{self._what}: {event['holders']}; waiting for up to {wait_s:g} s")
            elif event["event"] == "refused":
                raise self._refusal(event, wait_s)

    def check(self) -> None:
        """See HeldPlace."""
        if self._lost is None:
            self._write("check")
            self._next(_ANSWER_SECONDS)
        if self._lost is not None:
            raise LeaseLost(f"{self._what}: the lease was lost: {self._lost}")

    def when_lost(self, tell: Callable[[], None]) -> None:
        """See HeldPlace."""
        with self._lock:
            self._listeners = [tell]
            lost = self._lost is not None
        if lost:
            tell()

    def end(self) -> None:
        """Give the place back. Safe to call twice."""
        self._ended = True
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # others free its place once it gives no sign of life
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError):  # it has ended, and the reader says so
            print(line, file=self._process.stdin, flush=True)

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            return self._events.get(timeout=seconds)
        except queue.Empty:
            self._lose(f"its keeper has not answered within {seconds:g} s")
            return {"event": "lost"}

    def _read(self) -> None:
        for line in self._process.stdout or ():
            event = json.loads(line)
            if event["event"] == "lost":
                self._lose(event["message"])
            self._events.put(event)
        if not self._ended:
            self._lose(f"its keeper ended{self._last_words()}")
        self._events.put(
            {"event": "refused", "why": "broken", "message": f"its keeper ended{self._last_words()}"}
        )

    def _lose(self, message: str) -> None:
        with self._lock:
            self._lost = self._lost or message
            listeners = self._listeners
        for tell in listeners:
            tell()

    def _last_words(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._stderr.seek(0)
            lines = self._stderr.read().decode(errors="replace").strip().splitlines()
            return f": {lines[-1]}" if lines else ""
        return ""

    def _refusal(self, event: Mapping[str, Any], wait_s: float) -> BoardError:
        message = event["message"]
        if event["why"] == "timeout":
            return LeaseTimeout(
                f"{self._what}: still not free after {wait_s:g} s: {message}; wait longer with --rknpu-wait "
                "SECONDS, or end who holds it (labgrid-client -p PLACE release --kick)"
            )
        if event["why"] == "coordinator":
            return BoardError(
                f"{self._what}: it cannot be reached: {message}; see coordinator in boards.toml, or "
                f"${_COORDINATOR_VARIABLE}, and that labgrid-coordinator runs there"
            )
        if event["why"] == "labgrid":
            return BoardError(
                f"{self._what}: {self.python} has no labgrid with a gRPC coordinator ({message}); "
                f"install it with: {_INSTALL}"
            )
        return BoardError(f"{self._what}: {message}")


def _environment() -> dict[str, str]:
    """Without what is meant for this Python alone."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _identity(run: str) -> str:
    """A name at the coordinator that no other process has: it tells one process of a user from another.

    labgrid knows users by ``host/user``; see `pytest_rknpu.keeper.life.MARK` for what the second part holds.
    """
    try:
        user = os.environ.get("LG_USERNAME") or getpass.getuser()
    except (KeyError, OSError):  # no entry in the user data base: a container's bare uid
        user = f"uid{os.getuid()}"
    host = os.environ.get("LG_HOSTNAME") or socket.gethostname()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    words = (host, f"{user}.rknpu.{worker}.{os.getpid()}.{run}.{os.urandom(2).hex()}")
    return "/".join(map(_plain, words))


def _plain(word: str) -> str:
    """Without what labgrid or a terminal could take for more than a word."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", word)


def _at(board: Board, place: str, service: Mapping[str, Any]) -> Board:
    """The board over ssh. What the coordinator says is checked like what a boards.toml says."""
    table = board.model_dump(exclude_unset=True, exclude=_OF_THE_FARM)
    table |= {
        "transport": "ssh",
        "runtime": board.runtime,
        "host": str(service["address"]),
        "user": str(service["username"]),
        "port": int(service["port"]),
    }
    if service["proxy"] and board.jump is None:
        table["jump"] = str(service["proxy"])
    try:
        reached = type(board).model_validate(table)
    except ValueError as error:  # pydantic's ValidationError
        raise BoardError(
            f"board {board.name}: the NetworkService of labgrid place {place} cannot be used for ssh: {error}"
        ) from None
    return reached.model_copy(update={"power": board.power})


# What a board over ssh has no use for; power is labgrid's also then.
_OF_THE_FARM = {"coordinator", "place", "filter", "places", "power"}

"""A live board: provisioned, probed, able to run command lists, and noticed when it is gone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import BoardError, BoardLost, ConformanceFailure, HarnessError, RknpuError
from pytest_rknpu.inventory.pinned_clocks import PINNED_CLOCKS
from pytest_rknpu.inventory.socs import SoC
from pytest_rknpu.session.allowance import deadline_for
from pytest_rknpu.session.description import (
    MemorySizes,
    ModelDescription,
    counting_program,
    describing_program,
    description_from,
    flagged_sizing_program,
    sizes_from,
    sizing_program,
)
from pytest_rknpu.session.dice import Dice
from pytest_rknpu.session.link import ExecnetLink, Link, Message
from pytest_rknpu.session.program import Program
from pytest_rknpu.session.runtime_log import explanation
from pytest_rknpu.session.scratch import said_of, scratch_folder
from pytest_rknpu.transport import open_gateway

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

_START_SECONDS = 60.0
_REQUEST_SECONDS = 60.0
_PINNED_SECONDS = 86_400.0  # a day, which is the longest that the agent takes
# What goes to the board in one message of a model: a slow link, too, carries that within a request's time.
_PART_BYTES = 2**20
# An agent that hears nothing for so long ends: its host has gone without the link's noticing.
_SILENCE_SECONDS = 600.0
# After the deadline of a program: for the agent to say that it has passed.
_ANSWER_SECONDS = 5.0
# What an emulated board plays where boards.toml does not say.
_EMULATED_RUNTIME = "2.3.2"
_EMULATED_DRIVER = "0.9.8"


class RuntimeCallError(ConformanceFailure):
    """A call of the runtime returned a code that the test did not expect."""


class MissingFunction(RknpuError):
    """The runtime library does not export a function; the message is the proof for a skip."""


class BoardSession:
    """One agent on one board, from connecting to release.

    Use ``open_session``. ``versions`` and ``facts`` hold what was probed (VER-01); ``functions`` are the RKNN
    functions that the runtime library exports; ``clocks_recovered`` the clocks (files) that a session before
    left pinned, and that were put back at the start of this one.
    """

    def __init__(self, board: Board, link: Link, start: Message, facts: Mapping[str, Any]) -> None:
        self.board = board
        self.soc: SoC = board.chip
        self.functions = frozenset(start["functions"])
        self.agent = {"python": start["python"], "pid": start["pid"]}
        self.identity: Mapping[str, Any] | None = start.get("identity")
        self.boot_id: str | None = start.get("boot_id")
        self.clocks_recovered = tuple(step["path"] for step in start.get("clocks_recovered", ()))
        self.predecessor: Mapping[str, Any] | None = start.get("predecessor")
        self.facts = facts
        self.versions: dict[str, str] = {}
        self.alive = True
        self._link = link
        self._stored: set[str] = set()
        self._descriptions: dict[str, ModelDescription] = {}
        self.references: dict[tuple[str, str], list[bytes]] = {}
        self._dice = Dice(0)

    def begin(self, seed: int) -> None:
        """Before each test: what an emulated board leaves to chance follows from the test's own seed."""
        self._dice = Dice(seed if self.board.seed is None else self.board.seed)

    def request(self, message: Message, deadline_s: float = _REQUEST_SECONDS) -> Message:
        """One request of docs/command-lists.md.

        Raises BoardLost, or whatever interrupted it, after which ``alive`` is False; HarnessError for a
        request that cannot be sent, after which the board is as before.
        """
        if not self.alive:
            raise BoardLost(f"board {self.board.name}: the session ended earlier; open a new one")
        try:
            return self._link.request(message, deadline_s)
        except HarnessError:
            raise
        except BaseException:
            self.alive = False
            raise

    def execute(self, program: Program, deadline_s: float | None = None) -> Message:
        """Run ``program``; returns the reply with ``values`` and ``log``.

        It has ``deadline_s``, by default a minute and more for each run in it (see ``allowance``).

        Raises RuntimeCallError (a call's code), MissingFunction, HarnessError (a malformed program),
        BoardError (its loops take longer than ``deadline_s``), BoardLost (the board does not even say that).
        """
        plain = program.plain()
        deadline_s = deadline_for(plain) if deadline_s is None else deadline_s
        message: Message = {"request": "execute", "program": plain, "deadline_s": deadline_s}
        if self.board.runtime == "emulator":
            message["seed"] = self._dice.seed_for(plain)
        reply = self.request(message, deadline_s + _ANSWER_SECONDS)
        if not reply["ok"]:
            raise _error_of(self.board.name, reply)
        return reply

    def probe(self) -> Mapping[str, Any]:
        """Look at the board again; ``facts`` keeps what was found when the session began."""
        facts: Mapping[str, Any] = self.request({"request": "probe"})["facts"]
        return facts

    def conditions(self) -> Mapping[str, Any]:
        """One reading of clocks, temperatures, cooling and load (docs/command-lists.md, ``conditions``)."""
        reading: Mapping[str, Any] = self.request({"request": "conditions"})["conditions"]
        return reading

    def pin_clocks(self) -> list[Mapping[str, Any]]:
        """Pin every clock to what the SoC's table says; what came of each. Raises BoardError if none can."""
        wanted = PINNED_CLOCKS[self.soc.name]
        message = {"npu_hertz": wanted.npu, "ddr_hertz": wanted.ddr, "cpu_hertz": dict(wanted.cpu)}
        # A long measurement must not lose its clocks; an agent that loses its host restores them anyway.
        reply = self.request({"request": "pin_clocks", **message, "deadline_s": _PINNED_SECONDS})
        if not reply["ok"]:
            raise BoardError(f"board {self.board.name}: clocks not pinned: {reply['error']['message']}")
        clocks: list[Mapping[str, Any]] = reply["clocks"]
        return clocks

    def unpin_clocks(self) -> list[str]:
        """Put the clocks back; returns what could not be put back, in words."""
        reply = self.request({"request": "unpin_clocks"})
        if not reply["ok"]:
            return [str(reply["error"]["message"])]
        return [f"{step['path']}: {step['error']}" for step in reply["restored"] if step["error"]]

    def store_model(self, data: bytes) -> str:
        """Put a model on the board, once per content; returns its sha256."""
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._stored:
            if sha256 not in self.request({"request": "has_models", "hashes": [sha256]})["present"]:
                self._send_model(sha256, data)
            self._stored.add(sha256)
        return sha256

    def _send_model(self, sha256: str, data: bytes) -> None:
        """In parts, so that a dead link is noticed soon, and nothing else has to wait for a large model."""
        for offset in range(0, len(data) or 1, _PART_BYTES):
            part = data[offset : offset + _PART_BYTES]
            message = {"request": "put_model", "sha256": sha256, "offset": offset, "size": len(data)}
            reply = self.request({**message, "data": part})
            if not reply["ok"]:
                raise BoardError(f"board {self.board.name}: model not stored: {reply['error']['message']}")

    def describe(self, sha256: str) -> ModelDescription:
        """What the runtime says of a stored model (asked once per session)."""
        if sha256 not in self._descriptions:
            counts = self.execute(counting_program(sha256))["values"]["counts"]
            n_input, n_output = counts["n_input"], counts["n_output"]
            values = self.execute(describing_program(sha256, n_input, n_output))["values"]
            sizes = self.memory_sizes(sha256)
            self._descriptions[sha256] = description_from(values, sizes, n_input, n_output)
        return self._descriptions[sha256]

    def memory_sizes(self, sha256: str) -> MemorySizes:
        """What RKNN_QUERY_MEM_SIZE says of a stored model.

        Asked without a flag, and where that is refused with RKNN_FLAG_MEM_ALLOC_OUTSIDE. RuntimeCallError:
        refused either way.
        """
        answer = self.execute(sizing_program(sha256))["values"]["sizes"]
        if answer["code"] == 0:
            return sizes_from(answer, from_outside=False)
        answer = self.execute(flagged_sizing_program(sha256))["values"]["sizes"]
        return sizes_from(answer, from_outside=True)

    @property
    def runtime_release(self) -> tuple[int, ...]:
        """The runtime's version as numbers, ``(2, 3, 2)``; empty where nobody could tell."""
        found = re.search(r"(\d+)\.(\d+)\.(\d+)", self.versions.get("runtime", ""))
        return tuple(int(part) for part in found.groups()) if found else ()

    def reset(self) -> Message:
        """Destroy what a test left behind; the reply names it and carries the runtime's log."""
        return self.request({"request": "reset"})

    def cut(self) -> None:
        """End the link at once, from any thread: the board belongs to somebody else by now."""
        self.alive = False
        self._link.cut()

    def close(self) -> None:
        """End the agent; safe to call twice."""
        self.alive = False
        self._link.close()


_HINTS = {"deadline": "; the board itself answers: record fewer iterations, or give a longer deadline_s"}


def _error_of(board: str, reply: Message) -> Exception:
    error = reply["error"]
    where = f"board {board}, command {'.'.join(map(str, error.get('at', [])))}"
    log = f"\nruntime log:\n{reply['log'].rstrip()}" if reply.get("log") else ""
    known = explanation(reply.get("log", ""))
    meaning = f"\nwhat is known of that log: {known}" if known else ""
    hint = _HINTS.get(error["kind"], "")
    message = f"{where}: {error['message']}{hint}{meaning}{log}"
    if error["kind"] == "rknn":
        return RuntimeCallError(message)
    if error["kind"] == "null":
        return ConformanceFailure(message)
    if error["kind"] == "missing-function":
        return MissingFunction(message)
    if error["kind"] in ("library", "storage", "deadline"):
        return BoardError(message)
    return HarnessError(f"{where} ({error['kind']}): {error['message']}")


def connect(
    board: Board, *, seed: int, resources: ExitStack, lost: BoardSession | None = None
) -> BoardSession:
    """Start the agent on ``board`` and probe it; what is opened is closed by ``resources``.

    ``lost``: the session before this one, whose agent is ended where it is still there. Raises BoardError
    where the board cannot be reached or its runtime library does not load.
    """
    link, keys = reach(board, seed=seed, resources=resources)
    if board.transport not in (None, "local"):
        link.give_signs_of_life(_SILENCE_SECONDS)
        keys["silence_s"] = _SILENCE_SECONDS
    if lost is not None and lost.identity is not None:
        keys["predecessor"] = dict(lost.identity)
    start = link.request({"request": "start", **keys}, _START_SECONDS)
    if not start["ok"]:
        raise BoardError(f"board {board.name}: {start['error']['message']}")
    probe = link.request({"request": "probe"}, _REQUEST_SECONDS)
    if not probe["ok"]:
        raise BoardError(f"board {board.name}: probing failed: {probe['error']['message']}")
    require_as_declared(board, probe["facts"])
    return BoardSession(board, link, start, probe["facts"])


def require_as_declared(board: Board, facts: Mapping[str, Any]) -> None:
    """Nobody passes a stand-in off as hardware, nor hardware as a stand-in.

    Raises BoardError where boards.toml says otherwise than the agent found.
    """
    found = facts.get("stand_in", {}).get("value")
    if found is not None and not board.stand_in:
        raise BoardError(
            f"board {board.name}: boards.toml says that it is hardware, but a stand-in for the NPU's driver "
            f"answers there (told by {found['told_by']}); say stand_in = true, or take the stand-in away"
        )
    if found is None and board.stand_in:
        raise BoardError(
            f"board {board.name}: boards.toml says stand_in = true, but no stand-in answers there; take that "
            "key away if this is a real board"
        )


def reach(board: Board, *, seed: int, resources: ExitStack) -> tuple[Link, Message]:
    """A link to an agent on ``board`` that is not started yet, and the keys of ``start`` for it.

    Raises BoardError where the board cannot be reached.
    """
    keys = _emulator_keys(board, seed, resources) if board.runtime == "emulator" else _library_keys(board)
    gateway = open_gateway(board)
    resources.callback(gateway.close)
    link = ExecnetLink(board.name, gateway)
    resources.callback(link.close)
    return link, keys


def _library_keys(board: Board) -> Message:
    """The library with which the agent on a real board starts."""
    library = {"kind": "shared-object", "path": board.library_path, "context_bits": board.chip.context_bits}
    cache = {"model_cache": board.model_cache} if board.model_cache else {}
    return {"library": library, "root": "/", **cache}


def _emulator_keys(board: Board, seed: int, resources: ExitStack) -> Message:
    """The library and folders with which the agent of an emulated board starts."""
    from pytest_rknpu.emulator import make_root
    from pytest_rknpu.emulator.latency import LATENCY_MODELS

    soc = board.chip
    scratch = resources.enter_context(scratch_folder(board.name))
    runtime, driver = board.runtime_version or _EMULATED_RUNTIME, board.driver_version or _EMULATED_DRIVER
    faults = list(board.faults)
    paced = LATENCY_MODELS.get(board.latency_model or "")
    governor = paced.governor if paced is not None else "userspace"
    with said_of(board.name):
        make_root(scratch / "root", soc.name, {"runtime": runtime, "driver": driver}, faults, governor)
    options = {
        "soc": soc.name,
        "seed": seed if board.seed is None else board.seed,
        "faults": faults,
        "runtime_version": runtime,
        "driver_version": driver,
        **({"latency_model": board.latency_model, "root": str(scratch / "root")} if paced else {}),
    }
    library = {
        "kind": "python",
        "entry": "pytest_rknpu.emulator:open_library",
        "options": options,
        "context_bits": soc.context_bits,
    }
    return {"library": library, "root": str(scratch / "root"), "model_cache": str(scratch / "models")}

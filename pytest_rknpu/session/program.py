"""A recorder for command lists (docs/command-lists.md): each method appends one command, nothing runs yet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pytest_rknpu.agent.abi import rknn_mem_sync_mode
from pytest_rknpu.session.allowance import child_deadline_for
from pytest_rknpu.session.plain import plain_bytes, plain_command

Command = dict[str, Any]
Success = str | Sequence[str]

TO_DEVICE = rknn_mem_sync_mode.RKNN_MEMORY_SYNC_TO_DEVICE
FROM_DEVICE = rknn_mem_sync_mode.RKNN_MEMORY_SYNC_FROM_DEVICE
BIDIRECTIONAL = rknn_mem_sync_mode.RKNN_MEMORY_SYNC_BIDIRECTIONAL


class Program:
    """Commands in the order in which the board will run them, back to back, in one message.

    ``save`` names the key of the result under which a command's value comes back. Names of contexts and
    memories are the author's; they live until they are destroyed or the test ends.
    """

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._levels: list[list[Command]] = [[]]

    def plain(self) -> dict[str, Any]:
        """The program as plain data, ready for the link. HarnessError names what cannot be sent."""
        commands = [plain_command(entry, f"command {at}") for at, entry in enumerate(self._levels[0])]
        return {"commands": commands, "blobs": self._blobs}

    def _add(self, op: str, **keys: Any) -> None:
        self._levels[-1].append(
            {"op": op, **{key: value for key, value in keys.items() if value is not None}}
        )

    def _blob(self, data: Any) -> str:
        plain = plain_bytes(data, "data of a command")
        name = hashlib.sha256(plain).hexdigest()[:16]
        self._blobs[name] = plain
        return name

    def blob(self, name: str, data: bytes) -> None:
        """Name bytes for ``{"blob": name}`` arguments of ``call``."""
        self._blobs[name] = plain_bytes(data, f"blob {name!r}")

    # contexts

    def init(
        self,
        context: str,
        model: str,
        *,
        flags: int = 0,
        share_weights_of: str | None = None,
        expect: Success | None = None,
        save: str | None = None,
    ) -> None:
        """rknn_init from the buffer of the stored model with this sha256 (see Npu.model)."""
        self._add(
            "init",
            context=context,
            model=model,
            flags=int(flags),
            share_weights_of=share_weights_of,
            expect=expect,
            save=save,
        )

    def init_data(
        self, context: str, data: bytes, *, expect: Success | None = None, save: str | None = None
    ) -> None:
        """rknn_init from arbitrary bytes (ERR-01, ERR-02)."""
        self._add("init", context=context, data=self._blob(data), expect=expect, save=save)

    def init_path(
        self, context: str, model: str, *, expect: Success | None = None, save: str | None = None
    ) -> None:
        """rknn_init with size 0: the model is given by the path of the stored file."""
        self._add("init", context=context, path_of=model, expect=expect, save=save)

    def dup(
        self, context: str, source: str, *, expect: Success | None = None, save: str | None = None
    ) -> None:
        """rknn_dup_context: ``context`` is new and shares the weights of ``source``."""
        self._add("dup", context=context, source=source, expect=expect, save=save)

    def destroy(self, context: str, *, expect: Success | None = None, save: str | None = None) -> None:
        """rknn_destroy."""
        self._add("destroy", context=context, expect=expect, save=save)

    def query(
        self, context: str, query: int, save: str, *, index: int = 0, expect: Success | None = None
    ) -> None:
        """rknn_query; saves the structure's fields and ``code``."""
        self._add("query", context=context, query=int(query), index=index, expect=expect, save=save)

    def set_core_mask(
        self, context: str, mask: int, *, expect: Success | None = None, save: str | None = None
    ) -> None:
        """rknn_set_core_mask."""
        self._add("set_core_mask", context=context, mask=int(mask), expect=expect, save=save)

    # memories

    def create_mem(
        self,
        memory: str,
        context: str | None,
        size: int,
        *,
        alloc_flags: int | None = None,
        save: str | None = None,
    ) -> None:
        """rknn_create_mem, or rknn_create_mem2 where ``alloc_flags`` is given."""
        flags = None if alloc_flags is None else int(alloc_flags)
        self._levels[-1].append(
            {"op": "create_mem", "memory": memory, "context": context, "size": size}
            | ({} if flags is None else {"alloc_flags": flags})
            | ({} if save is None else {"save": save})
        )

    def import_fd(
        self, memory: str, context: str, source: str, size: int, *, offset: int = 0, save: str | None = None
    ) -> None:
        """rknn_create_mem_from_fd over the descriptor and mapping of ``source``."""
        self._add(
            "import_fd", memory=memory, context=context, source=source, size=size, offset=offset, save=save
        )

    def destroy_mem(self, memory: str, context: str, *, expect: Success | None = None) -> None:
        """rknn_destroy_mem."""
        self._add("destroy_mem", memory=memory, context=context, expect=expect)

    def bind(
        self,
        context: str,
        memory: str,
        attr: Mapping[str, Any],
        *,
        expect: Success | None = None,
        save: str | None = None,
    ) -> None:
        """rknn_set_io_mem with an attribute as a query returned it."""
        self._add("bind", context=context, memory=memory, attr=dict(attr), expect=expect, save=save)

    def bind_weights(self, context: str, memory: str, *, expect: Success | None = None) -> None:
        """rknn_set_weight_mem."""
        self._add("bind_weights", context=context, memory=memory, expect=expect)

    def bind_internal(
        self, context: str, memory: str, *, expect: Success | None = None, save: str | None = None
    ) -> None:
        """rknn_set_internal_mem."""
        self._add("bind_internal", context=context, memory=memory, expect=expect, save=save)

    def sync(
        self,
        memory: str,
        mode: int,
        context: str | None,
        *,
        expect: Success | None = None,
        save: str | None = None,
    ) -> None:
        """rknn_mem_sync; ``context`` None passes NULL (SYNC-12)."""
        self._levels[-1].append(
            {"op": "sync", "memory": memory, "context": context, "mode": int(mode)}
            | ({} if expect is None else {"expect": expect})
            | ({} if save is None else {"save": save})
        )

    # running

    def run(self, context: str, *, expect: Success | None = None, save: str | None = None) -> None:
        """rknn_run, blocking."""
        self._add("run", context=context, expect=expect, save=save)

    def set_inputs(
        self,
        context: str,
        inputs: Sequence[Mapping[str, Any]],
        *,
        expect: Success | None = None,
        save: str | None = None,
    ) -> None:
        """rknn_inputs_set; each input has index, data (bytes), type, fmt and pass_through."""
        plain = [{**entry, "data": self._blob(entry.get("data"))} for entry in inputs]
        self._add("set_inputs", context=context, inputs=plain, expect=expect, save=save)

    def get_outputs(
        self,
        context: str,
        save: str,
        *,
        count: int = 1,
        want_float: bool = False,
        expect: Success | None = None,
    ) -> None:
        """rknn_outputs_get of the first ``count`` outputs, and rknn_outputs_release."""
        outputs = [{"index": index, "want_float": want_float} for index in range(count)]
        self._add("get_outputs", context=context, outputs=outputs, expect=expect, save=save)

    # what the CPU does

    def write(self, memory: str, data: bytes, *, offset: int = 0) -> None:
        """The CPU writes ``data``."""
        self._add("write", memory=memory, offset=offset, data=self._blob(data))

    def write_cycle(self, memory: str, choices: Sequence[bytes], *, offset: int = 0) -> None:
        """The CPU writes entry i mod n in iteration i of the innermost repeat."""
        self._add("write", memory=memory, offset=offset, cycle=[self._blob(data) for data in choices])

    def fill(self, memory: str, byte: int, *, offset: int = 0, length: int | None = None) -> None:
        """The CPU fills a range, by default the whole memory."""
        self._add("fill", memory=memory, offset=offset, length=length, byte=byte)

    def read(self, memory: str, save: str, *, offset: int = 0, length: int | None = None) -> None:
        """The CPU reads a range, by default the whole memory."""
        self._add("read", memory=memory, offset=offset, length=length, save=save)

    def digest(self, memory: str, save: str, *, offset: int = 0, length: int | None = None) -> None:
        """The CPU reads a range, by default the whole memory; saves its sha256 in hexadecimal digits."""
        self._add("digest", memory=memory, offset=offset, length=length, save=save)

    def compare(
        self, memory: str, expected: bytes, save: str, *, offset: int = 0, mask: bytes | None = None
    ) -> None:
        """The CPU reads and compares; saves counts and the first difference.

        Bits that are 0 in ``mask`` (as long as ``expected``) are left out.
        """
        self.compare_cycle(memory, [expected], save, offset=offset, mask=mask)

    def compare_cycle(
        self,
        memory: str,
        choices: Sequence[bytes],
        save: str,
        *,
        offset: int = 0,
        mask: bytes | None = None,
    ) -> None:
        """As compare, with entry i mod n in iteration i of the innermost repeat."""
        names = [self._blob(data) for data in choices]
        chosen = None if mask is None else self._blob(mask)
        self._add("compare", memory=memory, offset=offset, cycle=names, mask=chosen, save=save)

    def thrash(self, size: int) -> None:
        """Read and write ``size`` bytes of scratch memory, so that the CPU's caches are evicted."""
        self._add("thrash", size=size)

    def timestamp(self, save: str) -> None:
        """Monotonic nanoseconds of the board."""
        self._add("timestamp", save=save)

    def resources(self, save: str) -> None:
        """Descriptors and mappings of the agent, DMA bytes where readable."""
        self._add("resources", save=save)

    def call(self, function: str, arguments: Sequence[Any], save: str) -> None:
        """Any RKNN function with any arguments; within a child only."""
        self._add("call", function=function, arguments=list(arguments), expect="any", save=save)

    # time

    def time_runs(
        self,
        contexts: Sequence[str],
        save: str,
        *,
        count: int | None = None,
        order: bytes | None = None,
        warm_up: int = 0,
        perf_run: bool = False,
        before: Sequence[Command] = (),
    ) -> None:
        """Time rknn_run, back to back: ``count`` times of one context, or in ``order`` (a byte per run)."""
        self._add(
            "time_runs",
            contexts=list(contexts),
            count=count,
            order=None if order is None else self._blob(order),
            warm_up=warm_up,
            perf_run=perf_run,
            before=list(before),
            save=save,
        )

    def time_syncs(
        self,
        memory: str,
        context: str | None,
        modes: Sequence[int],
        order: bytes,
        save: str,
        *,
        warm_up: int = 0,
        before: Sequence[Command] = (),
    ) -> None:
        """Time rknn_mem_sync in several modes, in ``order`` (a byte per sync, the index of its mode)."""
        self._levels[-1].append(
            {
                "op": "time_syncs",
                "memory": memory,
                "context": context,
                "modes": [int(mode) for mode in modes],
                "order": self._blob(order),
                "warm_up": warm_up,
                "before": list(before),
                "save": save,
            }
        )

    def time_no_op(self, count: int, save: str) -> None:
        """Time a C function that does nothing: what the binding itself costs."""
        self._add("time_no_op", count=count, warm_up=10, save=save)

    def include(self, other: Program) -> None:
        """Record everything that ``other`` has recorded."""
        self._levels[-1].extend(other._levels[0])
        self._blobs.update(other._blobs)

    @contextmanager
    def aside(self) -> Iterator[list[Command]]:
        """Commands recorded in the block are not part of the program: for ``before``."""
        with self._block() as commands:
            yield commands

    @contextmanager
    def under_load(self, *, memory_bytes: int) -> Iterator[None]:
        """Commands recorded in the block run while a process per CPU copies memory back and forth."""
        with self._block() as commands:
            yield
        self._add("under_load", commands=commands, memory_bytes=memory_bytes)

    # blocks

    @contextmanager
    def repeat(self, count: int) -> Iterator[None]:
        """Commands recorded in the block run ``count`` times."""
        with self._block() as commands:
            yield
        self._add("repeat", count=count, commands=commands)

    @contextmanager
    def child(
        self, save: str, *, deadline_s: float | None = None, inherits: Sequence[str] = ()
    ) -> Iterator[None]:
        """Commands recorded in the block run in a fresh process of the agent; its death is a result.

        It has ``deadline_s``, by default 20 s and more for each run in it (see ``allowance``). Memories
        that it ``inherits`` by descriptor can be the source of `import_fd` there.
        """
        with self._block() as commands:
            yield
        if deadline_s is None:
            deadline_s = child_deadline_for({"commands": commands, "blobs": self._blobs})
        self._add("child", commands=commands, deadline_s=deadline_s, inherits=list(inherits), save=save)

    @contextmanager
    def threads(self) -> Iterator[ThreadGroups]:
        """Groups recorded in the block run at once, one thread each."""
        groups = ThreadGroups(self)
        yield groups
        self._add("threads", groups=groups.recorded)

    @contextmanager
    def _block(self) -> Iterator[list[Command]]:
        commands: list[Command] = []
        self._levels.append(commands)
        try:
            yield commands
        finally:
            self._levels.pop()


class ThreadGroups:
    """Records the command lists of Program.threads."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.recorded: list[list[Command]] = []

    @contextmanager
    def group(self) -> Iterator[None]:
        """Commands recorded in the block are one thread's."""
        with self._program._block() as commands:
            yield
        self.recorded.append(commands)

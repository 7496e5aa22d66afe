"""Measures latency on a board: fresh processes, zero copy, raw samples, and the conditions they were taken
under.

Runs of one process are not independent of each other (memory lies where it lies, caches are as they are), so
that samples come from several fresh processes. What is timed is ``rknn_run`` on a context whose memories are
bound: the NPU's work and the runtime's, not Python's copying.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.agent.abi import CoreMask
from pytest_rknpu.errors import HarnessError
from pytest_rknpu.measure.conditions import npu_load
from pytest_rknpu.session.children import require_survived
from pytest_rknpu.session.layout import dtype_of
from pytest_rknpu.session.program import Program
from pytest_rknpu.session.zero_copy import ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import LoadedModel, Npu

Doubles = NDArray[np.float64]
Values = Mapping[str, Any]

WARM_UP = 20
"""Runs of each context that are not timed, in each process."""
NO_OPS = 1000
_SECONDS_PER_RUN = 2.0  # far more than any run takes: a deadline, not a budget
_SECONDS_TO_START = 60.0
_LONGEST_S = 86_000.0  # docs/command-lists.md: less than a day
_LOOKS = 3
_LOOK_S = 1.0


@dataclass(frozen=True)
class ProcessTimes:
    """What one fresh process saw. Times in ns; ``perf_run_us`` is what PERF_RUN said, or a negative code."""

    wall_ns: tuple[int, ...]
    perf_run_us: tuple[int, ...]
    init_ns: int
    first_ns: int
    no_op_ns: float


@dataclass(frozen=True)
class Timing:
    """A model's latency under one core mask.

    ``readings`` were taken before, between and after the processes; the first and the last at rest.
    """

    model: str
    core_mask: str | None
    processes: tuple[ProcessTimes, ...]
    readings: tuple[Mapping[str, Any], ...]

    def milliseconds(self) -> list[Doubles]:
        """The runs of each process, in order."""
        return [np.array(process.wall_ns, np.float64) / 1e6 for process in self.processes]

    @property
    def no_op_us(self) -> float:
        """What the binding costs per call: the median over the processes, in microseconds."""
        return float(np.median([process.no_op_ns for process in self.processes])) / 1000


def shares(total: int, parts: int) -> list[int]:
    """``total`` in whole parts that differ by one at most."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def time_model(
    npu: Npu,
    model: LoadedModel,
    core_mask: str | None,
    *,
    samples: int,
    processes: int,
    warm_up: int = WARM_UP,
) -> Timing:
    """Time ``samples`` runs in ``processes`` fresh processes, one after the other, after a warm-up in each.

    ``core_mask`` is the header's name, None where the SoC has none. Raises ConformanceFailure where a process
    dies or a call fails.
    """
    data = timing_inputs(npu, model)
    readings = [_at_rest(npu)]
    found: list[ProcessTimes] = []
    for number, count in enumerate(shares(samples, processes)):
        io = ZeroCopy("timed", model)
        program = _one_process(io, core_mask, data)
        program.time_runs([io.context], "runs", count=count, warm_up=warm_up, perf_run=can_ask_perf_run(npu))
        values = run_process(
            npu, program, count, f"process {number + 1} of {processes} that times {model.name}"
        )
        found.append(_process_times(values))
        readings.append(npu.session.conditions())
    readings += _until_at_rest(npu, readings[-1])
    return Timing(model.name, core_mask, tuple(found), tuple(readings))


def _at_rest(npu: Npu) -> Mapping[str, Any]:
    """A reading of a board on which nothing of this session runs."""
    reading = npu.session.conditions()
    return [reading, *_until_at_rest(npu, reading)][-1]


def _until_at_rest(npu: Npu, reading: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Further readings until the NPU is at rest; what still runs there some looks later is somebody else's.

    The driver's load is of the last second, in which a test before or a run of this one may have worked.
    """
    further: list[Mapping[str, Any]] = []
    while npu_load(reading) > 0 and len(further) < _LOOKS:
        time.sleep(_LOOK_S)
        reading = npu.session.conditions()
        further.append(reading)
    return further


def can_ask_perf_run(npu: Npu) -> bool:
    """Whether RKNN_QUERY_PERF_RUN exists: not on RV1103 and RV1106 (C API reference, table 4-1)."""
    return npu.soc.runtime != "librknnmrt"


def timing_inputs(npu: Npu, model: LoadedModel) -> list[bytes]:
    """Native memories of all inputs, full of seeded random numbers of their type (floats from 0 to 1)."""
    found = []
    for tensor in model.description.inputs:
        dtype = dtype_of(tensor.native)
        count = tensor.native_size // dtype.itemsize
        if dtype.kind == "f":
            values = npu.random.random(count).astype(dtype)
        else:
            limits = np.iinfo(dtype)
            values = npu.random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        found.append(values.tobytes())
    return found


def open_context(program: Program, io: ZeroCopy, core_mask: str | None, data: Sequence[bytes]) -> None:
    """Record a context that is ready to run on ``data``, one memory for each input."""
    program.init(io.context, io.model.sha256, flags=io.flags)
    _prepare(program, io, core_mask, data)


def _prepare(program: Program, io: ZeroCopy, core_mask: str | None, data: Sequence[bytes]) -> None:
    io.bind(program)
    if core_mask is not None:
        program.set_core_mask(io.context, CoreMask[core_mask])
    for index, memory in enumerate(data):
        program.write(f"{io.context} input {index}", memory)


def _one_process(io: ZeroCopy, core_mask: str | None, data: Sequence[bytes]) -> Program:
    """Record the start of a process: init and first run, each with its time, and the binding's cost."""
    program = Program()
    program.timestamp("before init")
    program.init(io.context, io.model.sha256)
    program.timestamp("after init")
    _prepare(program, io, core_mask, data)
    program.timestamp("before first")
    program.run(io.context)
    program.timestamp("after first")
    program.time_no_op(NO_OPS, "no-op")
    return program


def _process_times(values: Values) -> ProcessTimes:
    return ProcessTimes(
        wall_ns=tuple(values["runs"]["wall_ns"]),
        perf_run_us=tuple(values["runs"]["perf_run_us"] or ()),
        init_ns=values["after init"] - values["before init"],
        first_ns=values["after first"] - values["before first"],
        no_op_ns=float(np.median(values["no-op"]["wall_ns"])),
    )


def run_process(npu: Npu, commands: Program, runs: int, what: str) -> dict[str, Any]:
    """Run a program in a fresh process of the board; returns what it saved. ``runs`` sets the deadline."""
    deadline_s = min(_SECONDS_TO_START + _SECONDS_PER_RUN * runs, _LONGEST_S)
    program = Program()
    with program.child("process", deadline_s=deadline_s):
        program.include(commands)
    values = npu.execute(program, deadline_s=deadline_s + _SECONDS_TO_START)
    return require_survived(npu, values["process"], what)


def interleaved_order(random: np.random.Generator, calls: int, blocks: int) -> bytes:
    """``blocks`` blocks, each with all ``calls`` once in random order, as bytes for ``order``.

    What changes slowly (temperature, other processes) then strikes all alike, and a fixed order cannot favour
    the one that runs after another.
    """
    return b"".join(bytes(random.permutation(calls).astype(np.uint8)) for _ in range(blocks))


def by_call(order: bytes, samples: Sequence[float], calls: int) -> Doubles:
    """Samples in the order of the runs as an array (blocks, calls) of what each call took in each block."""
    table = np.empty((len(order) // calls, calls))
    for position, (call, sample) in enumerate(zip(order, samples, strict=True)):
        table[position // calls, call] = sample
    return table


@dataclass(frozen=True)
class Comparison:
    """Several calls timed interleaved: per process an array (blocks, calls) in ms, and the conditions."""

    calls: tuple[str, ...]
    processes: tuple[Doubles, ...]
    readings: tuple[Mapping[str, Any], ...]

    def ratios(self, call: str, to: str) -> list[Doubles]:
        """Per process, of each block: the time of ``call`` by that of ``to``."""
        a, b = self.calls.index(call), self.calls.index(to)
        return [table[:, a] / table[:, b] for table in self.processes]

    def milliseconds(self, call: str) -> list[Doubles]:
        """Per process, the times of one call."""
        return [table[:, self.calls.index(call)] for table in self.processes]


Recorder = Callable[[bytes], Program]


def compare_calls(
    npu: Npu, calls: Sequence[str], record: Recorder, *, blocks: int, processes: int
) -> Comparison:
    """Time several calls against each other, in blocks of random order, in fresh processes.

    ``record(order)`` gives the program of one process; "timed" is where it saves ``time_runs`` or
    ``time_syncs``.
    """
    if blocks < processes:
        raise HarnessError(f"{blocks} blocks do not make {processes} processes")
    readings = [_at_rest(npu)]
    tables: list[Doubles] = []
    for number, count in enumerate(shares(blocks, processes)):
        order = interleaved_order(npu.random, len(calls), count)
        what = f"process {number + 1} of {processes} that compares {', '.join(calls)}"
        values = run_process(npu, record(order), len(order), what)
        wall = np.array(values["timed"]["wall_ns"], np.float64) / 1e6
        tables.append(by_call(order, wall.tolist(), len(calls)))
        readings.append(npu.session.conditions())
    readings += _until_at_rest(npu, readings[-1])
    return Comparison(tuple(calls), tuple(tables), tuple(readings))

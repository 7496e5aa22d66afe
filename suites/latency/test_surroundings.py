"""LAT-07, LAT-10: latency under load and with cold caches. Measured: there is no right value for it."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.inventory.budgets import one_core
from pytest_rknpu.session import LoadedModel, Program, ZeroCopy
from pytest_rknpu.session.latency import Latency, record_quantiles
from pytest_rknpu.session.timing import WARM_UP, open_context, run_process, timing_inputs

pytestmark = pytest.mark.needs("time")

ALPHA = 0.05
LOAD_BYTES = 16 * 2**20
"""Per load process: more than the last cache of any of these chips."""
THRASH_BYTES = 16 * 2**20


@pytest.mark.requirement("LAT-07")
def test_latency_under_load(latency: Latency, probe: LoadedModel, effort: Effort) -> None:
    """Runs while a process per CPU copies memory back and forth, beside runs of an idle board."""
    io = ZeroCopy("timed", probe)
    count = effort.rounds(300)
    program = _opened(latency, io)
    program.time_runs([io.context], "idle", count=count, warm_up=WARM_UP)
    with program.under_load(memory_bytes=LOAD_BYTES):
        program.time_runs([io.context], "under load", count=count, warm_up=WARM_UP)
    _record(latency, program, count, "under load", "idle")


@pytest.mark.requirement("LAT-10")
def test_latency_with_cold_caches(latency: Latency, probe: LoadedModel, effort: Effort) -> None:
    """Before each cold run the CPU's caches are filled with other data, and the NPU runs another model."""
    io, other = ZeroCopy("timed", probe), ZeroCopy("other", latency.npu.model("probe_chain"))
    count = effort.rounds(100)
    program = _opened(latency, io, other)
    program.time_runs([io.context], "warm", count=count, warm_up=WARM_UP)
    with program.aside() as before:
        program.run(other.context)
        program.thrash(THRASH_BYTES)
    program.time_runs([io.context], "cold", count=count, before=before)
    _record(latency, program, count, "cold", "warm")


def _opened(latency: Latency, *contexts: ZeroCopy) -> Program:
    program = Program()
    npu = latency.npu
    for io in contexts:
        open_context(program, io, one_core(npu.soc), timing_inputs(npu, io.model))
    return program


def _record(latency: Latency, program: Program, count: int, changed: str, usual: str) -> None:
    """Run, and write down both with their ratio. Raises ConformanceFailure where a figure is no time."""
    npu = latency.npu
    before = npu.session.conditions()
    values = run_process(npu, program, 4 * count, f"process that times {changed} and {usual}")
    latency.note_conditions([before, npu.session.conditions()])
    medians = {}
    for name in (usual, changed):
        wall = np.array(values[name]["wall_ns"], np.float64) / 1e6
        if wall.size != count or wall.min() <= 0:
            raise ConformanceFailure(
                f"{name}: {wall.size} of {count} runs were timed, the fastest {wall.min():g} ms"
            )
        record_quantiles(npu, [wall], ALPHA, prefix=f"{name} ")
        npu.record.keep_samples(name, [values[name]["wall_ns"]], "ns")
        medians[name] = float(np.median(wall))
    npu.record.measure(f"{changed} by {usual}, medians", medians[changed] / medians[usual])

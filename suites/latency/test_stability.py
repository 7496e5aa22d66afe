"""LAT-04, LAT-05: whether time can be trusted at all on this board."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.agent.fields import MAXIMUM_RUNS
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.inventory.budget_table import DEFAULT_ALPHA, DEFAULT_PROCESSES, DEFAULT_SAMPLES
from pytest_rknpu.inventory.budgets import one_core
from pytest_rknpu.measure import instabilities
from pytest_rknpu.session import LoadedModel, code_name
from pytest_rknpu.session.latency import Latency, record_timing
from pytest_rknpu.session.timing import Timing, can_ask_perf_run, time_model

pytestmark = pytest.mark.needs("time")

ROUNDING_US = 1
OUTLIER_SHARE = 0.002
"""Of a stable board: less than what a verdict about p99 can bear, so that one slow run in 200 is told."""
SUSTAINED_S = 45
"""A chip and its heat sink take tens of seconds to warm up; clocks fall only then."""
FIRST_LOOK = 20


@pytest.mark.requirement("LAT-04")
def test_perf_run_is_not_longer_than_the_run(latency: Latency, probe: LoadedModel, effort: Effort) -> None:
    """RKNN_QUERY_PERF_RUN is a part of the time that the call took, for every single run."""
    npu = latency.npu
    if not can_ask_perf_run(npu):
        pytest.skip(
            f"{npu.soc.name}: {npu.soc.runtime} has no RKNN_QUERY_PERF_RUN (C API reference, table 4-1)"
        )
    timing = time_model(npu, probe, one_core(npu.soc), samples=effort.rounds(200), processes=2)
    record_timing(latency, timing, DEFAULT_ALPHA)
    wall = np.array([sample for process in timing.processes for sample in process.wall_ns]) / 1000
    perf = np.array([sample for process in timing.processes for sample in process.perf_run_us])
    refused = perf[perf <= 0]
    if refused.size:
        said = ", ".join(code_name(int(code)) for code in np.unique(refused))
        raise ConformanceFailure(f"PERF_RUN has no time for {refused.size} of {perf.size} runs: {said}")
    longer = perf > wall + ROUNDING_US
    if longer.any():
        worst = int((perf - wall).argmax())
        raise ConformanceFailure(
            f"PERF_RUN is longer than the call for {int(longer.sum())} of {perf.size} runs; at worst it says "
            f"{perf[worst]} us of {wall[worst]:.0f} us"
        )


@pytest.mark.requirement("LAT-05")
def test_latency_is_stable(latency: Latency, probe: LoadedModel, effort: Effort) -> None:
    """No autocorrelation, drift, two modes, outliers or throttling; clocks fixed and recorded."""
    npu = latency.npu
    samples = max(200, effort.rounds(DEFAULT_SAMPLES))
    timing = time_model(npu, probe, one_core(npu.soc), samples=samples, processes=DEFAULT_PROCESSES)
    record_timing(latency, timing, DEFAULT_ALPHA)
    require_stable(latency, timing)


@pytest.mark.requirement("LAT-05")
def test_latency_holds_when_warm(latency: Latency, probe: LoadedModel, effort: Effort) -> None:
    """As above, of one process that runs without a pause for 45 s (4 s when quick, 450 s when thorough)."""
    npu, mask = latency.npu, one_core(latency.npu.soc)
    look = time_model(npu, probe, mask, samples=FIRST_LOOK, processes=1)
    run_s = float(np.median(look.milliseconds()[0])) / 1000
    samples = min(max(200, int(effort.rounds(SUSTAINED_S) / run_s)), MAXIMUM_RUNS)
    timing = time_model(npu, probe, mask, samples=samples, processes=1)
    # Not as samples: comparisons of runs want several processes.
    (times,) = timing.milliseconds()
    quarter = max(1, len(times) // 4)
    npu.record.measure("without a pause", float(times.sum()) / 1000, "s")
    npu.record.measure("p50 of the first quarter", float(np.median(times[:quarter])), "ms")
    npu.record.measure("p50 of the last quarter", float(np.median(times[-quarter:])), "ms")
    latency.note_conditions(timing.readings)
    require_stable(latency, timing)


def require_stable(latency: Latency, timing: Timing) -> None:
    """Inconclusive, with every reason why these runs are not draws from one distribution."""
    unstable = instabilities(timing.milliseconds(), outlier_share=OUTLIER_SHARE)
    reasons = latency.disturbances(timing.readings) + unstable
    if reasons:
        name = latency.npu.session.board.name
        raise Inconclusive(f"board {name} is not stable:\n" + "\n".join(reasons))

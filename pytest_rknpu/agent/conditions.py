"""One reading of all that moves latency, as facts like those of ``probe``."""

from __future__ import annotations

import os
import time
from typing import Any

from . import clocks
from .parsers import parse_integers
from .probe import npu_load
from .readers import Absent, Fact, Root, fact

STAT = "proc/stat"
_IDLE, _WAITING, _COUNTED = 3, 4, 8  # of the columns user, nice, system, idle, iowait, irq, softirq, steal


def conditions(root: Root) -> dict[str, Fact]:
    """Clocks, temperatures, cooling, and what else uses CPU and NPU."""
    return {
        "npu_clock": fact(clocks.npu, root),
        "ddr_clock": fact(clocks.ddr, root),
        "cpu_clocks": fact(clocks.cpu, root),
        "thermal": fact(clocks.thermal, root),
        "cooling": fact(clocks.cooling, root),
        "load": fact(clocks.system_load, root),
        "cpu_time": fact(cpu_time, root),
        "npu_load": fact(npu_load, root),
    }


def cpu_time(root: Root) -> dict[str, Any]:
    """Seconds for which CPUs worked since some time, for anybody and for this process and its children.

    Two readings tell what others had of them meanwhile; ``at`` is when each was taken, in seconds.
    """
    first = root.read(STAT).partition("\n")[0]
    ticks = parse_integers(first.partition(" ")[2])[:_COUNTED]
    if not first.startswith("cpu ") or len(ticks) < _IDLE + 1:
        raise Absent(f"/{STAT} begins with {first[:40]!r}, which is no time of all CPUs")
    busy = sum(ticks) - ticks[_IDLE] - sum(ticks[_WAITING : _WAITING + 1])
    own = os.times()
    return {
        "busy": busy / os.sysconf("SC_CLK_TCK"),
        "own": own.user + own.system + own.children_user + own.children_system,
        "at": time.monotonic(),
    }

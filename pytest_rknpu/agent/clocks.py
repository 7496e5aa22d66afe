"""Clocks, governors, temperatures and load, read only; frequencies in hertz.

``transitions`` count how often a clock or a cooling device has moved since the board started: two readings
that agree in everything else still tell whether it moved in between. None where the kernel does not count.
"""

from __future__ import annotations

import re
from typing import Any

from .parsers import parse_integers
from .readers import Absent, Root

DEVFREQ = "sys/class/devfreq"
CPUFREQ = "sys/devices/system/cpu/cpufreq"
THERMAL = "sys/class/thermal"


def npu_node(root: Root) -> str:
    """Name of the NPU's devfreq node; ``Absent`` on boards without one (RV1103/RV1106)."""
    nodes = root.names(DEVFREQ, "*.npu", "*npu*")
    if not nodes:
        raise Absent(f"no node of /{DEVFREQ} belongs to the NPU")
    return nodes[0]


def ddr_node(root: Root) -> str:
    """Name of the DDR's devfreq node; ``Absent`` where the firmware keeps the DDR clock to itself."""
    if "dmc" not in root.names(DEVFREQ, "dmc"):
        raise Absent(f"there is no /{DEVFREQ}/dmc: the DDR clock is unknown, and it moves latency most")
    return "dmc"


def npu(root: Root) -> dict[str, Any]:
    """State of the NPU's devfreq node."""
    return _devfreq(root, npu_node(root))


def ddr(root: Root) -> dict[str, Any]:
    """State of the DDR's devfreq node."""
    return _devfreq(root, ddr_node(root))


def _devfreq(root: Root, node: str) -> dict[str, Any]:
    folder = f"{DEVFREQ}/{node}"
    governors = root.optional(f"{folder}/available_governors")
    return {
        "node": node,
        "governor": root.optional(f"{folder}/governor"),
        "governors": governors.split() if governors is not None else [],
        "hertz": _integer(root, f"{folder}/cur_freq"),
        "available_hertz": parse_integers(root.optional(f"{folder}/available_frequencies") or ""),
        "load": root.optional(f"{folder}/load"),
        "transitions": _last_number(root.optional(f"{folder}/trans_stat")),
    }


def cpu(root: Root) -> dict[str, Any]:
    """State of every CPU frequency policy."""
    return {name: _policy(root, f"{CPUFREQ}/{name}") for name in cpu_policies(root)}


def cpu_policies(root: Root) -> list[str]:
    """Names of the CPU frequency policies; ``Absent`` where there is none."""
    policies = root.names(CPUFREQ, "policy*")
    if not policies:
        raise Absent(f"/{CPUFREQ} has no policy: the CPU clock is fixed or unknown")
    return policies


def _policy(root: Root, folder: str) -> dict[str, Any]:
    available = parse_integers(root.optional(f"{folder}/scaling_available_frequencies") or "")
    return {
        "governor": root.optional(f"{folder}/scaling_governor"),
        "hertz": _integer(root, f"{folder}/scaling_cur_freq", 1000),
        "available_hertz": [entry * 1000 for entry in available],
        "minimum_hertz": _integer(root, f"{folder}/scaling_min_freq", 1000),
        "maximum_hertz": _integer(root, f"{folder}/scaling_max_freq", 1000),
        "transitions": _integer(root, f"{folder}/stats/total_trans"),
    }


def thermal(root: Root) -> list[dict[str, Any]]:
    """Type and temperature of every thermal zone; the NPU's is ``npu-thermal`` or ``soc-thermal``."""
    zones = root.names(THERMAL, "thermal_zone*")
    if not zones:
        raise Absent(f"/{THERMAL} has no zone")
    return [
        {
            "zone": zone,
            "type": root.optional(f"{THERMAL}/{zone}/type"),
            "millidegrees": _signed(root.optional(f"{THERMAL}/{zone}/temp")),
            "trips": _trips(root, f"{THERMAL}/{zone}"),
        }
        for zone in zones
    ]


def _trips(root: Root, folder: str) -> list[dict[str, Any]]:
    """Temperatures at which something happens: ``passive`` takes clocks away, ``critical`` ends it all."""
    trips = []
    for name in root.names(folder, "trip_point_*_temp"):
        temperature = _signed(root.optional(f"{folder}/{name}"))
        kind = root.optional(f"{folder}/{name[: -len('temp')]}type")
        if temperature is not None and kind is not None:
            trips.append({"type": kind, "millidegrees": temperature})
    return trips


def cooling(root: Root) -> list[dict[str, Any]]:
    """Cooling devices: ``state`` 0 is idle; a frequency device above 0 throttles its clock."""
    devices = root.names(THERMAL, "cooling_device*")
    if not devices:
        raise Absent(f"/{THERMAL} has no cooling device")
    return [
        {
            "device": device,
            "type": root.optional(f"{THERMAL}/{device}/type"),
            "state": _integer(root, f"{THERMAL}/{device}/cur_state"),
            "maximum": _integer(root, f"{THERMAL}/{device}/max_state"),
            "transitions": _integer(root, f"{THERMAL}/{device}/stats/total_trans"),
        }
        for device in devices
    ]


def system_load(root: Root) -> dict[str, Any]:
    """Runnable processes on average over 1, 5 and 15 minutes."""
    fields = root.read("proc/loadavg").split()
    return {"minutes_1": float(fields[0]), "minutes_5": float(fields[1]), "minutes_15": float(fields[2])}


def _last_number(text: str | None) -> int | None:
    """``Total transition : 12``, the last line of trans_stat."""
    found = re.findall(r"\d+", (text or "").rpartition("Total")[2])
    return int(found[-1]) if found and "Total" in (text or "") else None


def _integer(root: Root, path: str, factor: int = 1) -> int | None:
    found = parse_integers(root.optional(path) or "")
    return found[0] * factor if found else None


def _signed(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None

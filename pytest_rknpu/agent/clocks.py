"""Clocks, governors and temperatures, read only; frequencies in hertz."""

from __future__ import annotations

from typing import Any

from .parsers import parse_integers
from .readers import Absent, Root

DEVFREQ = "sys/class/devfreq"
CPUFREQ = "sys/devices/system/cpu/cpufreq"
THERMAL = "sys/class/thermal"


def npu(root: Root) -> dict[str, Any]:
    """State of the NPU's devfreq node; ``Absent`` on boards without one (RV1103/RV1106)."""
    nodes = root.names(DEVFREQ, "*.npu", "*npu*")
    if not nodes:
        raise Absent(f"no node of /{DEVFREQ} belongs to the NPU")
    return _devfreq(root, nodes[0])


def ddr(root: Root) -> dict[str, Any]:
    """State of the DDR's devfreq node ``dmc``."""
    if "dmc" not in root.names(DEVFREQ, "dmc"):
        raise Absent(f"there is no /{DEVFREQ}/dmc: the DDR clock is unknown, and it moves latency most")
    return _devfreq(root, "dmc")


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
    }


def cpu(root: Root) -> dict[str, Any]:
    """State of every CPU frequency policy."""
    policies = {name: _policy(root, f"{CPUFREQ}/{name}") for name in root.names(CPUFREQ, "policy*")}
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
        }
        for zone in zones
    ]


def _integer(root: Root, path: str, factor: int = 1) -> int | None:
    found = parse_integers(root.optional(path) or "")
    return found[0] * factor if found else None


def _signed(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None

"""To what clocks are pinned for measurements, by SoC: the highest that boards run at for good.

Sources: sysfs of running boards as published by their users, and the vendor's own scripts for fixed clocks
(see docs/latency.md). A board takes its highest frequency that is not above the one here; a clock that is not
here goes to the highest there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

_MHZ = 1_000_000


@dataclass(frozen=True)
class PinnedClocks:
    """Frequencies in hertz; None: no such clock, or nothing known. ``cpu`` is by cpufreq policy.

    ``immovable``: which of "npu" and "ddr" the SoC's kernels have no node for, since nothing moves them.
    """

    npu: int | None
    ddr: int | None
    cpu: Mapping[str, int]
    immovable: frozenset[str] = frozenset()


def _clocks(
    npu_mhz: int | None, ddr_mhz: int | None, *, immovable: Iterable[str] = (), **cpu_mhz: int
) -> PinnedClocks:
    return PinnedClocks(
        npu=None if npu_mhz is None else npu_mhz * _MHZ,
        ddr=None if ddr_mhz is None else ddr_mhz * _MHZ,
        cpu=MappingProxyType({policy: megahertz * _MHZ for policy, megahertz in cpu_mhz.items()}),
        immovable=frozenset(immovable),
    )


PINNED_CLOCKS: Mapping[str, PinnedClocks] = MappingProxyType(
    {
        "rk3588": _clocks(1000, 2112, policy0=1800, policy4=2352, policy6=2352),
        "rk3576": _clocks(1000, 2112, policy0=2208, policy4=2304),
        "rk3568": _clocks(1000, 1560, policy0=1800),
        "rk3566": _clocks(1000, 1056, policy0=1800),
        "rk3562": _clocks(1000, 2112, policy0=2016),
        "rv1126b": _clocks(950, 1332, policy0=1608),
        # The NPU has no devfreq node, the DDR clock is read-only (of the B variants nobody published it).
        "rv1103": _clocks(None, None, policy0=1608, immovable=("npu", "ddr")),
        "rv1106": _clocks(None, None, policy0=1608, immovable=("npu", "ddr")),
        "rv1103b": _clocks(None, None, immovable=("npu",)),
        "rv1106b": _clocks(None, None, immovable=("npu",)),
    }
)
"""By the name of the SoC; every one of ``SOCS`` has an entry."""

"""What a board lacks, by the facts of its probe: each with the reason and the remedy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.inventory.socs import SoC

Facts = Mapping[str, Mapping[str, Any]]

_MINI = "librknnmrt"


@dataclass(frozen=True)
class Missing:
    """``what`` is a stable word; ``needed``: nothing runs without it, else some tests are skipped."""

    what: str
    why: str
    remedy: str
    needed: bool


def missing_on(
    soc: SoC, facts: Facts, *, emulated: bool = False, pins_clocks: bool = False
) -> tuple[Missing, ...]:
    """Everything that the facts of a board of that ``soc`` show to be missing, what is needed first.

    ``emulated``: it has no library file and no packages. ``pins_clocks``: boards.toml says ``pin``. A fact
    that was not probed says nothing.
    """
    checks = _CHECKS if emulated else (*_CHECKS, *_HARDWARE_CHECKS)
    found = [problem for check in checks for problem in check(soc, facts)]
    if pins_clocks and not emulated:
        found += _pinning(facts)
    return in_order(found)


def in_order(found: Iterable[Missing]) -> tuple[Missing, ...]:
    """What is needed first, otherwise as given."""
    return tuple(sorted(found, key=lambda problem: not problem.needed))


def reason(fact: Mapping[str, Any] | None) -> str | None:
    """Why a fact has no value; None where it has one, or was not probed."""
    if fact is None or "value" in fact:
        return None
    return str(fact["absent"] if "absent" in fact else fact["blocked"])


def _soc(soc: SoC, facts: Facts) -> Iterator[Missing]:
    fact = facts.get("device_tree_compatible")
    if fact is None:
        return
    if "value" not in fact:
        driver = facts.get("npu_device", {}).get("value") or {}
        seen = f" (the NPU's driver says {driver['compatible']})" if driver.get("compatible") else ""
        yield Missing(
            "device-tree",
            f"{reason(fact)}{seen}",
            "without it nobody can tell that this is the right board (VER-02); in a container, mount the "
            "host's /proc/device-tree/compatible",
            needed=False,
        )
    elif not soc.matches_device_tree(fact["value"]):
        yield Missing(
            "soc",
            f"boards.toml says {soc.name}, the device tree {', '.join(fact['value'])}",
            "correct `soc`, or connect to the right board",
            needed=True,
        )


def _library(soc: SoC, facts: Facts) -> Iterator[Missing]:
    fact = facts.get("runtime_library")
    if fact is None:
        return
    name = f"{soc.runtime}.so"
    if "absent" in fact:
        folder = "armhf-uclibc (or armhf)" if soc.runtime == _MINI else "aarch64 (or armhf)"
        target = "/oem/usr/lib" if soc.runtime == _MINI else "/usr/lib"
        yield Missing(
            "runtime-library",
            fact["absent"],
            f"copy {name} from the SDK's rknpu2/runtime/Linux/librknn_api/{folder} to {target}, or say in "
            "boards.toml where it is (`library`)",
            needed=True,
        )
    elif "blocked" in fact:
        yield Missing(
            "runtime-library",
            fact["blocked"],
            f"put the {name} there that is made for this Python, or set `library` or `python` in boards.toml",
            needed=True,
        )
    elif fact.get("value", {}).get("others"):
        yield Missing(
            "one-runtime-library",
            f"{fact['value']['path']} is used, and there are others: {', '.join(fact['value']['others'])}",
            "programs on this board may run with another runtime than the one tested; remove the old copies",
            needed=False,
        )


def _npu(soc: SoC, facts: Facts) -> Iterator[Missing]:
    device, access = facts.get("npu_device"), facts.get("npu_access")
    if device is not None and "value" not in device:
        other = facts.get("other_npu_driver", {}).get("value")
        yield Missing(
            "npu-driver",
            str(reason(device)),
            "boot the vendor's kernel instead of mainline's (librknnrt does not know the driver rocket)"
            if other
            else "load the vendor's rknpu driver: its kernel with CONFIG_ROCKCHIP_RKNPU, and the device "
            "tree's npu node enabled; in a container, pass the device through (--device)",
            needed=True,
        )
    elif access is not None and "value" not in access:
        yield Missing(
            "npu-access",
            str(reason(access)),
            "log in as root, or join the group that owns the node (render or video), and log in again",
            needed=True,
        )
    elif access is not None and access["value"]["refused"]:
        yield Missing(
            "npu-access-to-all-nodes",
            "; ".join(access["value"]["refused"]),
            f"{access['value']['node']} can be used, a runtime that takes another node fails: join its group",
            needed=False,
        )


def _driver_files(soc: SoC, facts: Facts) -> Iterator[Missing]:
    for fact, name, remedy in _ROOTS_FACTS:
        why = reason(facts.get(fact))
        if why is not None:
            yield Missing(name, why, remedy, needed=False)


#: What mostly only root may read: the fact, what is missing without it, and the remedy.
_ROOTS_FACTS = (
    (
        "driver_version",
        "driver-version",
        "run as root once, to see it: results are not tied to a driver without it (VER-01, VER-03)",
    ),
    (
        "debugfs",
        "debugfs",
        "run as root, with debugfs mounted: NPU load (VER-05) and DMA memory (MEM-08) stay unseen else",
    ),
    (
        "npu_kernel_log",
        "kernel-log",
        "let this user read it (root, or kernel.dmesg_restrict=0): VER-05 is inconclusive else",
    ),
)


def _lite(soc: SoC, facts: Facts) -> Iterator[Missing]:
    why = reason(facts.get("lite_version"))
    if why is not None and soc.runtime != _MINI:
        yield Missing(
            "lite2",
            why,
            "pip install rknn-toolkit-lite2 (aarch64 only); ACC-03 is skipped else",
            needed=False,
        )


def _pinning(facts: Facts) -> Iterator[Missing]:
    user = facts.get("user", {}).get("value")
    if user is not None and user["uid"] != 0:
        yield Missing(
            "pinned-clocks",
            f"boards.toml says `pin`, but the agent runs as {user['name']}",
            "log in as root; only root can set clocks",
            needed=False,
        )


Check = Callable[[SoC, Facts], Iterator[Missing]]
_CHECKS: tuple[Check, ...] = (_soc, _npu, _driver_files)
_HARDWARE_CHECKS: tuple[Check, ...] = (_library, _lite)

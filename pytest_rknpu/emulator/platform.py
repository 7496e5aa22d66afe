"""Which board is played: the SoC, what its runtime version exports and honours, and what it calls itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.agent.abi import CoreMask
from pytest_rknpu.emulator.faults import parse_faults
from pytest_rknpu.emulator.hooks import Hooks
from pytest_rknpu.emulator.latency import LATENCY_MODELS, Pace
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.socs import SoC, find_soc

DEFAULT_RUNTIME = "2.3.2"
DEFAULT_DRIVER = "0.9.8"

# Where no source tells the SoC's own value, that of its relatives is played (guide 1.5.2: 16 on all but
# RK3566/68).
_ASSUMED_ATOM = 16
_ASSUMED_WIDTH_ALIGNMENT = 16

# Exported by librknnmrt 2.3.2 (observed), also where the call is not supported there.
_MINI_EXPORTS = frozenset(
    f"rknn_{name}"
    for name in (
        *(
            "create_mem",
            "create_mem2",
            "create_mem_from_fd",
            "create_mem_from_phys",
            "destroy",
            "destroy_mem",
        ),
        *("dup_context", "init", "inputs_set", "mem_sync", "outputs_get", "outputs_release", "query", "run"),
        *("set_input_shape", "set_input_shapes", "set_internal_mem", "set_io_mem", "set_weight_mem", "wait"),
    )
)
# What the emulated librknnrt exports: rknn_api.h without matmul and custom operators, which are not emulated.
_FULL_EXPORTS = _MINI_EXPORTS | {
    "rknn_set_core_mask",
    "rknn_set_batch_core_num",
    "rknn_create_mem_from_mb_blk",
}
# Observed: 1.5.2 lacks rknn_mem_sync, 1.6.0 lacks rknn_create_mem2, and both ignore the flush flags. The next
# release line is taken to be the first that has them.
_EXPORTED_SINCE: Mapping[str, tuple[int, ...]] = {"rknn_mem_sync": (1, 6), "rknn_create_mem2": (2, 0)}
_FLUSH_FLAGS_SINCE = (2, 0)
# A header of the 1.x line ends at RKNN_NPU_CORE_0_1_2, that of 2.3.2 has RKNN_NPU_CORE_ALL.
_MASK_ALL_SINCE = (2, 0)

_OPTIONS = frozenset({"soc", "seed", "faults", "runtime_version", "driver_version", "latency_model", "root"})


@dataclass(frozen=True)
class Platform:
    """One emulated board. ``atom`` is C2 of int8 in channels, ``width_alignment`` is in pixels."""

    soc: SoC
    seed: int
    hooks: Hooks
    runtime_version: str
    driver_version: str
    atom: int
    width_alignment: int
    exports: frozenset[str]
    honours_flush_flags: bool
    pace: Pace | None

    @property
    def is_mini(self) -> bool:
        """Whether the mini runtime (RV1103, RV1106) is played: zero copy only, native attributes only."""
        return self.soc.runtime == "librknnmrt"

    @property
    def core_masks(self) -> frozenset[int]:
        """The values that rknn_set_core_mask takes here."""
        known = frozenset(int(CoreMask[name]) for name in self.soc.core_masks)
        if release_of(self.runtime_version) >= _MASK_ALL_SINCE:
            return known
        return known - {int(CoreMask.RKNN_NPU_CORE_ALL)}

    def supports(self, function: str) -> bool:
        """Whether the C API reference (table 4-1) says that ``function`` works on this SoC."""
        return function not in self.soc.unsupported_functions


def platform_from(options: Mapping[str, Any]) -> Platform:
    """The board that ``options`` describe; ConfigurationError for an unknown key, SoC, fault or version.

    Keys: ``soc`` (required), ``seed`` (int, default 0), ``faults`` (list of "name" or "name:key=value"),
    ``runtime_version``, ``driver_version`` (reported as "emulated VERSION"), ``latency_model`` (a name of
    `latency.LATENCY_MODELS`), ``root`` (the sysroot, where a latency model shows throttling).
    """
    unknown = set(options) - _OPTIONS
    if unknown or "soc" not in options:
        wrong = f"unknown: {', '.join(sorted(unknown))}" if unknown else "`soc` is missing"
        raise ConfigurationError(f"emulator options: {wrong}; known: {', '.join(sorted(_OPTIONS))}")
    soc = find_soc(str(options["soc"]))
    version = str(options.get("runtime_version") or DEFAULT_RUNTIME)
    release = release_of(version)
    exports = _MINI_EXPORTS if soc.runtime == "librknnmrt" else _FULL_EXPORTS
    faults: Sequence[str] = options.get("faults") or ()
    return Platform(
        soc=soc,
        seed=int(options.get("seed") or 0),
        hooks=parse_faults(faults),
        runtime_version=version,
        driver_version=str(options.get("driver_version") or DEFAULT_DRIVER),
        atom=soc.feature_atom.get("int8", _ASSUMED_ATOM),
        width_alignment=soc.width_alignment or _ASSUMED_WIDTH_ALIGNMENT,
        exports=frozenset(name for name in exports if release >= _EXPORTED_SINCE.get(name, ())),
        honours_flush_flags=release >= _FLUSH_FLAGS_SINCE,
        pace=_pace(options),
    )


def _pace(options: Mapping[str, Any]) -> Pace | None:
    name = options.get("latency_model")
    if name is None:
        return None
    if name not in LATENCY_MODELS:
        raise ConfigurationError(f"unknown latency model {name!r}; known: {', '.join(LATENCY_MODELS)}")
    return Pace(LATENCY_MODELS[name], int(options.get("seed") or 0), options.get("root"))


def release_of(version: str) -> tuple[int, ...]:
    """The numbers at the head of a version: ``2.0.0b0`` gives (2, 0, 0)."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    if not numbers:
        raise ConfigurationError(f"version {version!r} does not begin with numbers such as 2.3.2")
    return tuple(numbers)

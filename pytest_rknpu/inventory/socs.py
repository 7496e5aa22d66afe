"""The SoCs with an NPU of the RKNPU2 family and what each can do, as data.

Sources, as cited beside the values:

- *reference 4-1*: table 4-1 of the RKNN C API reference 2.3.2 (which function exists on which SoC).
- *header*: ``rknn_api.h`` 2.3.2.
- *guide 2.5*: RKNN SDK user guide 2.5.0, chapters 4.1.6 (cache) and 4.1.7 (sparse inference).
- *guide 1.5*: RKNPU user guide 1.5.2 (zero-copy layouts, SRAM); newer documents do not print them any more.
- *compiler*: seen in build logs of RKNN-Toolkit2 2.5.0.
- *boards*: sysfs of running boards as published by their users.

What no source tells is ``None`` (or a missing entry of ``feature_atom``): unknown, not "no".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.wording import did_you_mean, quoted

RuntimeName = Literal["librknnrt", "librknnmrt"]


@dataclass(frozen=True)
class SoC:
    """One SoC as boards.toml names it.

    ``core_masks`` are the names (header: ``rknn_core_mask``) that ``rknn_set_core_mask`` takes there, empty
    where the function does not exist. ``feature_atom`` is C2 of the NC1HWC2 layout in elements, by dtype
    (``int8``, ``float16``, ``int16``); a dtype whose C2 no source tells has no entry. ``width_alignment`` is
    in pixels, ``sram_bytes`` is the most that the runtime can use. ``pointer_bits`` is that of the usual user
    space there: a probe of the board has the last word.
    """

    name: str
    aliases: tuple[str, ...]
    npu_cores: int
    core_masks: tuple[str, ...]
    runtime: RuntimeName
    context_bits: Literal[32, 64]
    pointer_bits: Literal[32, 64]
    sparse: bool
    sram_bytes: int | None
    non_cacheable: bool
    npu_devfreq: str | None
    feature_atom: Mapping[str, int] = field(hash=False)
    width_alignment: int | None
    unsupported_functions: frozenset[str]
    null_context_sync: bool
    device_tree: str
    toolkit_platform: str

    def matches_device_tree(self, compatible: Iterable[str]) -> bool:
        """Tell whether any of the NUL-separated entries of ``/proc/device-tree/compatible`` names this SoC.

        Entries are compared whole: ``rockchip,rv1106b`` is not an rv1106, and a board's own entry
        (``rockchip,rk3588-orangepi-5-plus``) says nothing.
        """
        own = {self.device_tree, *(f"rockchip,{alias}" for alias in self.aliases)}
        return any(entry.lower() in own for entry in compatible)


# Unsupported on every SoC (reference 4-1); rknn_set_input_shape: unusable since 1.5.2.
_NOWHERE = frozenset({"rknn_wait", "rknn_create_mem_from_mb_blk", "rknn_set_input_shape"})

# RK3576 and RK3588 only (reference 4-1).
_SEVERAL_CORES = frozenset({"rknn_set_core_mask", "rknn_set_batch_core_num", "rknn_matmul_set_core_mask"})

# Not on RV1103/RV1103B/RV1106/RV1106B (reference 4-1). Some of them are exported there all the same.
_NOT_MINI = frozenset(
    {
        "rknn_dup_context",
        "rknn_inputs_set",
        "rknn_outputs_get",
        "rknn_outputs_release",
        "rknn_set_input_shapes",
        "rknn_matmul_create",
        "rknn_matmul_create_dynamic_shape",
        "rknn_matmul_set_io_mem",
        "rknn_matmul_set_quant_params",
        "rknn_matmul_get_quant_params",
        "rknn_matmul_set_dynamic_shape",
        "rknn_matmul_run",
        "rknn_matmul_destroy",
        "rknn_register_custom_ops",
        "rknn_custom_op_get_op_attr",
        "rknn_B_normal_layout_to_native_layout",
    }
)

# header; RK3576 has two cores, so that CORE_2 and CORE_0_1_2 are illegal there.
_TWO_CORE_MASKS = (
    "RKNN_NPU_CORE_AUTO",
    "RKNN_NPU_CORE_0",
    "RKNN_NPU_CORE_1",
    "RKNN_NPU_CORE_0_1",
    "RKNN_NPU_CORE_ALL",
)
_THREE_CORE_MASKS = (
    "RKNN_NPU_CORE_AUTO",
    "RKNN_NPU_CORE_0",
    "RKNN_NPU_CORE_1",
    "RKNN_NPU_CORE_2",
    "RKNN_NPU_CORE_0_1",
    "RKNN_NPU_CORE_0_1_2",
    "RKNN_NPU_CORE_ALL",
)

# C2 of NC1HWC2 by dtype.
_ATOM_WIDE = MappingProxyType({"int8": 16, "float16": 8, "int16": 8})  # guide 1.5: RK3562, RK3588, RV1103/06
_ATOM_NARROW = MappingProxyType({"int8": 8, "float16": 4, "int16": 4})  # guide 1.5: RK3566, RK3568
_ATOM_RK3576 = MappingProxyType({"int8": 16, "float16": 8})  # compiler
_ATOM_RV1126B = MappingProxyType({"int8": 16})  # compiler
_ATOM_UNKNOWN: Mapping[str, int] = MappingProxyType({})


def _full_runtime(
    name: str,
    *,
    aliases: tuple[str, ...] = (),
    npu_cores: int = 1,
    core_masks: tuple[str, ...] = (),
    sparse: bool = False,
    sram_bytes: int | None = None,
    npu_devfreq: str,
    feature_atom: Mapping[str, int],
    width_alignment: int | None,
) -> SoC:
    """Fill in what every SoC with librknnrt.so has in common."""
    return SoC(
        name=name,
        aliases=aliases,
        npu_cores=npu_cores,  # boards; one core wherever rknn_set_core_mask does not exist (reference 4-1)
        core_masks=core_masks,
        runtime="librknnrt",
        context_bits=64,  # header: rknn_context is uint64_t unless __arm__
        pointer_bits=64,  # aarch64 builds of the runtime
        sparse=sparse,  # guide 2.5, 4.1.7
        sram_bytes=sram_bytes,
        non_cacheable=True,  # rknn_create_mem2 exists (reference 4-1)
        npu_devfreq=npu_devfreq,  # boards
        feature_atom=feature_atom,
        width_alignment=width_alignment,
        unsupported_functions=_NOWHERE if core_masks else _NOWHERE | _SEVERAL_CORES,
        null_context_sync=True,  # guide 2.5, 4.1.6: NULL except on the RV1103 and RV1106 families
        device_tree=f"rockchip,{name}",
        toolkit_platform=name,
    )


def _mini_runtime(name: str, *, feature_atom: Mapping[str, int], width_alignment: int | None) -> SoC:
    """Fill in what every SoC with librknnmrt.so has in common."""
    return SoC(
        name=name,
        aliases=(),
        npu_cores=1,  # boards (RV1103, RV1106); B parts: there is no rknn_set_core_mask (reference 4-1)
        core_masks=(),
        runtime="librknnmrt",
        context_bits=32,  # header: uint32_t where __arm__ is defined
        pointer_bits=32,
        sparse=False,  # guide 2.5 names RK3576 and RV1126B; the compiler ignores sparse_infer for the B parts
        sram_bytes=None,
        non_cacheable=True,  # rknn_create_mem2 exists (reference 4-1)
        npu_devfreq=None,  # boards (RV1103, RV1106): there is none; the B parts: unknown
        feature_atom=feature_atom,
        width_alignment=width_alignment,
        unsupported_functions=_NOWHERE | _SEVERAL_CORES | _NOT_MINI,
        null_context_sync=False,  # guide 2.5, 4.1.6
        device_tree=f"rockchip,{name}",
        toolkit_platform=name,
    )


_TABLE = (
    _full_runtime(
        "rk3588",
        aliases=("rk3588s",),
        npu_cores=3,
        core_masks=_THREE_CORE_MASKS,
        sram_bytes=956 * 1024,  # guide 1.5, driver 0.8.0 or newer
        npu_devfreq="fdab0000.npu",
        feature_atom=_ATOM_WIDE,
        width_alignment=16,  # guide 1.5
    ),
    _full_runtime(
        "rk3576",
        npu_cores=2,
        core_masks=_TWO_CORE_MASKS,
        sparse=True,
        npu_devfreq="27700000.npu",
        feature_atom=_ATOM_RK3576,
        width_alignment=None,
    ),
    _full_runtime(
        "rk3568",
        npu_devfreq="fde40000.npu",
        feature_atom=_ATOM_NARROW,
        width_alignment=8,  # guide 1.5
    ),
    _full_runtime(
        "rk3566",
        npu_devfreq="fde40000.npu",
        feature_atom=_ATOM_NARROW,
        width_alignment=8,  # guide 1.5
    ),
    _full_runtime(
        "rk3562",
        npu_devfreq="ff300000.npu",
        feature_atom=_ATOM_WIDE,
        width_alignment=16,  # guide 1.5
    ),
    _full_runtime(
        "rv1126b",
        sparse=True,
        npu_devfreq="22000000.npu",
        feature_atom=_ATOM_RV1126B,
        width_alignment=None,
    ),
    _mini_runtime("rv1103", feature_atom=_ATOM_WIDE, width_alignment=16),  # guide 1.5
    _mini_runtime("rv1106", feature_atom=_ATOM_WIDE, width_alignment=16),  # guide 1.5
    _mini_runtime("rv1103b", feature_atom=_ATOM_UNKNOWN, width_alignment=None),
    _mini_runtime("rv1106b", feature_atom=_ATOM_UNKNOWN, width_alignment=None),
)

SOCS: Mapping[str, SoC] = MappingProxyType({soc.name: soc for soc in _TABLE})
"""Every known SoC by its name; aliases are found by `find_soc`."""

_BY_ANY_NAME = {name: soc for soc in _TABLE for name in (soc.name, *soc.aliases)}

_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("rk1808", "rk3399pro", "rv1109", "rv1126"),
            "has an NPU of the older RKNPU1 family, which needs RKNN-Toolkit (1.x) and its own runtime; "
            "this package covers RKNPU2",
        ),
        "rk2118": "has no Linux runtime (its library comes with an RTOS SDK), so that no suite can run on it",
    }
)


def find_soc(name: str) -> SoC:
    """Find a SoC by name or alias, in any case of letters.

    Raises ConfigurationError for a name that is unknown (with the nearest known one) or that belongs to a
    family which this package does not cover (with the reason).
    """
    key = name.strip().lower()
    if key in _BY_ANY_NAME:
        return _BY_ANY_NAME[key]
    if key in _REFUSED:
        raise ConfigurationError(f"SoC {quoted(name)} {_REFUSED[key]}")
    known = ", ".join(sorted(_BY_ANY_NAME))
    raise ConfigurationError(
        f"unknown SoC {quoted(name)}{did_you_mean(key, _BY_ANY_NAME) or f'; known: {known}'}"
    )

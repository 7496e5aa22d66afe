"""What a test may say it needs, and the proof that a board lacks it.

A need is a word of `CAPABILITIES` or the name of an RKNN function (``rknn_dup_context``). A board is said to
lack it only where a source proves so: what is unknown is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from pytest_rknpu.errors import ConfigurationError


class Chip(Protocol):
    """The part of `pytest_rknpu.inventory.socs.SoC` that capabilities are read from."""

    @property
    def name(self) -> str: ...
    @property
    def runtime(self) -> str: ...
    @property
    def npu_cores(self) -> int: ...
    @property
    def core_masks(self) -> tuple[str, ...]: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def non_cacheable(self) -> bool: ...
    @property
    def null_context_sync(self) -> bool: ...
    @property
    def unsupported_functions(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class Capability:
    """``present`` answers for a SoC and a kind of evidence; ``lack`` is the proof where it says no."""

    present: Callable[[Chip, str], bool]
    lack: str


CAPABILITIES: Mapping[str, Capability] = MappingProxyType(
    {
        "several_cores": Capability(lambda soc, _: soc.npu_cores > 1, "has one NPU core"),
        "core_masks": Capability(lambda soc, _: bool(soc.core_masks), "has no rknn_set_core_mask"),
        "sparse": Capability(lambda soc, _: soc.sparse, "has no sparse inference (guide 4.1.7)"),
        "non_cacheable": Capability(lambda soc, _: soc.non_cacheable, "has no non-cacheable memory"),
        "null_context_sync": Capability(
            lambda soc, _: soc.null_context_sync,
            "does not take a NULL context in rknn_mem_sync (guide 4.1.6)",
        ),
        "copying_api": Capability(
            lambda soc, _: "rknn_inputs_set" not in soc.unsupported_functions,
            "has no rknn_inputs_set and rknn_outputs_get (C API reference, table 4-1)",
        ),
        # Which board has it is not the SoC's doing: `Board.without_time` says why one has not.
        "time": Capability(lambda _, evidence: True, "has no time that means anything"),
        "arithmetic": Capability(
            lambda _, evidence: evidence != "vendor-runtime",
            "has a stand-in for its NPU here, which hashes and does not compute",
        ),
        "hardware": Capability(
            lambda _, evidence: evidence == "hardware", "is played by software, which has no meaningful time"
        ),
    }
)
"""What `pytest.mark.needs` takes beside the names of RKNN functions."""


def require_known_needs(needs: Iterable[object], where: str) -> tuple[str, ...]:
    """The needs, checked. Raises ConfigurationError that names ``where`` and the nearest known word."""
    known = []
    for need in needs:
        if not isinstance(need, str) or not (need in CAPABILITIES or need.startswith("rknn_")):
            import difflib  # here, as every import counts in runs that have nothing to do with boards

            near = difflib.get_close_matches(str(need), CAPABILITIES, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            words = ", ".join(CAPABILITIES)
            raise ConfigurationError(
                f"{where}: there is no capability {need!r}{hint}; known: {words}, and names of RKNN functions"
            )
        known.append(need)
    return tuple(known)


def lacking(
    needs: Iterable[str], soc: Chip, evidence: str, exported: Collection[str] | None = None
) -> str | None:
    """The proof that a board lacks one of ``needs``, or None.

    ``exported`` are the functions of the board's runtime library; None before anyone has asked it.
    """
    for need in needs:
        if need in CAPABILITIES:
            if not CAPABILITIES[need].present(soc, evidence):
                return f"{soc.name} {CAPABILITIES[need].lack}"
        elif need in soc.unsupported_functions:
            return f"{soc.name}: {need} is not supported by {soc.runtime} (C API reference, table 4-1)"
        elif exported is not None and need not in exported:
            return f"{soc.name}: the runtime library does not export {need}"
    return None

"""Every seeded fault of all layers, as data: what it breaks, how it is seeded, who must catch it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_rknpu.emulator import FAULTS
from pytest_rknpu.emulator.latency import LATENCY_MODELS
from tests.proof.doctored import DoctoredFault
from tests.proof.result_faults import RESULT_FAULTS
from tests.proof.sparse_faults import SPARSE_FAULTS
from tests.proof.toolchain_faults import TOOLCHAIN_FAULTS

EMULATOR, LATENCY, ANSWERS, TOOLCHAIN = "emulator", "latency model", "answers", "toolchain"


@dataclass(frozen=True)
class Seeded:
    """One way in which something can be broken.

    ``layer`` is where it is seeded, ``evidence`` the kind that its results have. Each of ``requirements``
    must turn red; ``effort`` is the least at which they do (``--rknpu-effort``). What is ``slow`` is left to
    the full form.
    """

    name: str
    layer: str
    evidence: str
    description: str
    requirements: tuple[str, ...]
    effort: str = "quick"
    slow: bool = False


# Latency models that break a requirement; "steady" is the sound one. LAT-05 is inconclusive by design.
_LATENCY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: tuple(model.shows.partition(":")[0].split(", "))
        for name, model in LATENCY_MODELS.items()
        if name != "steady"
    }
)
_LONG = ("late-throttle", "slower")
"""Latency models that show only in a long run."""


def _emulated() -> Iterator[Seeded]:
    for fault in FAULTS.values():
        if not fault.requirements:  # choices break nothing; losses take the board (tests/recovery)
            continue
        for key, choices in (fault.parameters or {"": ("",)}).items():
            for choice in choices:
                name = f"{fault.name}:{key}={choice}" if key else fault.name
                yield Seeded(name, EMULATOR, "emulator", fault.description, fault.requirements, fault.effort)


def _played() -> Iterator[Seeded]:
    for name, requirements in _LATENCY.items():
        words = LATENCY_MODELS[name].shows.partition(": ")[2]
        effort = "normal" if name in _LONG else "quick"
        yield Seeded(name, LATENCY, "emulator", words, requirements, effort, slow=name in _LONG)


_BY_HAND: Mapping[tuple[str, str], tuple[DoctoredFault, ...]] = MappingProxyType(
    {(ANSWERS, "emulator"): RESULT_FAULTS, (TOOLCHAIN, "simulator"): (*TOOLCHAIN_FAULTS, *SPARSE_FAULTS)}
)
DOCTORED: Mapping[str, DoctoredFault] = MappingProxyType(
    {fault.name: fault for faults in _BY_HAND.values() for fault in faults}
)
"""The faults that are made by hand, by name."""


def _doctored() -> Iterator[Seeded]:
    for (layer, evidence), faults in _BY_HAND.items():
        for fault in faults:
            yield Seeded(fault.name, layer, evidence, fault.description, fault.requirements)


CATALOGUE: Mapping[str, Seeded] = MappingProxyType(
    {seeded.name: seeded for seeded in (*_emulated(), *_played(), *_doctored())}
)
"""By name, in the order of the document."""


def of_layer(layer: str) -> list[Seeded]:
    """The faults that are seeded there."""
    return [seeded for seeded in CATALOGUE.values() if seeded.layer == layer]

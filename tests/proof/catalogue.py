"""Every seeded fault of all layers, as data: what it breaks, how it is seeded, who must catch it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_rknpu.emulator import FAULTS
from pytest_rknpu.emulator.latency import LATENCY_MODELS
from tests.proof.toolchain_faults import TOOLCHAIN_FAULTS

EMULATOR, LATENCY, TOOLCHAIN = "emulator", "latency model", "toolchain"


@dataclass(frozen=True)
class Seeded:
    """One way in which something can be broken.

    ``layer`` is where it is seeded, ``evidence`` the kind that its results have. Each of ``requirements``
    must turn red; ``effort`` is the least at which they do (``--rknpu-effort``).
    """

    name: str
    layer: str
    evidence: str
    description: str
    requirements: tuple[str, ...]
    effort: str = "quick"


# Latency models that break a requirement; "steady" is the sound one. LAT-05 is inconclusive by design.
_LATENCY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: (model.shows.partition(":")[0],) for name, model in LATENCY_MODELS.items() if name != "steady"}
)


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
        yield Seeded(name, LATENCY, "emulator", words, requirements)


def _doctored() -> Iterator[Seeded]:
    for fault in TOOLCHAIN_FAULTS:
        yield Seeded(fault.name, TOOLCHAIN, "simulator", fault.description, fault.requirements)


CATALOGUE: Mapping[str, Seeded] = MappingProxyType(
    {seeded.name: seeded for seeded in (*_emulated(), *_played(), *_doctored())}
)
"""By name, in the order of the document."""


def of_layer(layer: str) -> list[Seeded]:
    """The faults that are seeded there."""
    return [seeded for seeded in CATALOGUE.values() if seeded.layer == layer]

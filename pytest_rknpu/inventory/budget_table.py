"""What a ``[[budget]]`` table of boards.toml may say: how long a model may take on a board, and how large it
may be.

A quantile is a budget of its own: ``p99_ms`` says that 99 of 100 runs take no longer. Units are in the names
of the keys, since a number does not tell whether it means milliseconds. What the table refers to (model,
board, core mask) is checked against the rest of the file by ``budgets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.inventory.words import Name, Text

DEFAULT_SAMPLES = 1000
DEFAULT_PROCESSES = 5
DEFAULT_ALPHA = 0.05

Milliseconds = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=1, le=2**63 - 1)]

QUANTILES: Mapping[str, float] = MappingProxyType({"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99})
"""Key -> quantile."""
SIZES = ("weight_bytes", "internal_bytes", "dma_bytes")
_TIMES = (*QUANTILES, "first_inference_ms", "init_ms")
_FIGURES = (*_TIMES, *SIZES)


class Budget(BaseModel):
    """One ``[[budget]]`` table. ``core_mask`` is the header's name once the file was read as a whole."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: Name = Field(
        description="The model: one that is shipped, or a `[[model]]` of the file.", examples=["digits_cnn"]
    )
    soc: str | None = Field(
        default=None, description="All boards with this SoC. Give `soc` or `board`.", examples=["rk3588"]
    )
    board: Name | None = Field(
        default=None,
        description="This board only, by its name in the file; its keys go before those for its SoC.",
        examples=["orange-pi-5-plus"],
    )
    core_mask: str | None = Field(
        default=None,
        description="The core mask, as the header writes it or in short (`0_1`). Default: one core "
        "(`RKNN_NPU_CORE_0`). Only where the SoC has core masks.",
        examples=["RKNN_NPU_CORE_0_1"],
    )
    p50_ms: Milliseconds | None = Field(
        default=None, description="The median of a run takes no longer (LAT-01).", examples=[2.4]
    )
    p95_ms: Milliseconds | None = Field(
        default=None, description="95 of 100 runs take no longer (LAT-01).", examples=[2.6]
    )
    p99_ms: Milliseconds | None = Field(
        default=None, description="99 of 100 runs take no longer (LAT-01).", examples=[3.0]
    )
    first_inference_ms: Milliseconds | None = Field(
        default=None,
        description="The first run of a fresh process takes no longer, in the median of processes (LAT-02).",
        examples=[20.0],
    )
    init_ms: Milliseconds | None = Field(
        default=None,
        description="`rknn_init` takes no longer, in the median of fresh processes (LAT-02).",
        examples=[150.0],
    )
    weight_bytes: Bytes | None = Field(
        default=None,
        description="RKNN_QUERY_MEM_SIZE reports no more for weights (MEM-01).",
        examples=[262144],
    )
    internal_bytes: Bytes | None = Field(
        default=None,
        description="RKNN_QUERY_MEM_SIZE reports no more for internal tensors (MEM-01).",
        examples=[1048576],
    )
    dma_bytes: Bytes | None = Field(
        default=None,
        description="RKNN_QUERY_MEM_SIZE reports no more DMA memory in all for a context (MEM-01).",
        examples=[2097152],
    )
    samples: int = Field(
        default=DEFAULT_SAMPLES,
        ge=1,
        le=1_000_000,
        description="How many runs are judged, fixed beforehand; default 1000, of all processes together.",
        examples=[3000],
    )
    processes: int = Field(
        default=DEFAULT_PROCESSES,
        ge=2,
        le=100,
        description="In how many fresh processes they run; default 5. One does not show how they differ.",
        examples=[10],
    )
    alpha: float = Field(
        default=DEFAULT_ALPHA,
        ge=1e-6,
        le=0.2,
        description="How often a verdict may be wrong; default 0.05.",
        examples=[0.01],
    )
    note: Text | None = Field(
        default=None, description="Anything a reader should know.", examples=["30 frames per second"]
    )

    @field_validator("soc")
    @classmethod
    def _known_soc(cls, value: str | None) -> str | None:
        try:
            return None if value is None else find_soc(value).name
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _makes_sense(self) -> Budget:
        if (self.soc is None) == (self.board is None):
            raise ValueError('give one of the keys "soc" and "board"')
        if all(getattr(self, key) is None for key in _FIGURES):
            raise ValueError(f"budgets nothing; give one of {', '.join(_FIGURES)}")
        if self.samples < self.processes:
            raise ValueError(
                f'key "samples": {self.samples} samples cannot come from {self.processes} processes'
            )
        given = list(self.quantiles.items())
        for (lower, low), (higher, high) in pairwise(given):
            if high < low:
                raise ValueError(f'key "{_key(higher)}": {high:g} is below {_key(lower)} = {low:g}')
        return self

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantile -> budget in ms, for those given, ascending."""
        found = {quantile: getattr(self, key) for key, quantile in QUANTILES.items()}
        return {quantile: value for quantile, value in found.items() if value is not None}

    @property
    def milliseconds(self) -> dict[str, float]:
        """Key -> value of all that are times."""
        return {key: getattr(self, key) for key in _TIMES if getattr(self, key) is not None}

    @property
    def sizes(self) -> dict[str, int]:
        """Key -> bytes of all that are sizes."""
        return {key: getattr(self, key) for key in SIZES if getattr(self, key) is not None}


def _key(quantile: float) -> str:
    return next(key for key, known in QUANTILES.items() if known == quantile)

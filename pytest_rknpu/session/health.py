"""Whether a board is fit for work again: compared with what it was before it was lost.

The board is its own reference: a small inference, by the most careful way that its runtime offers, must give
the bytes that it gave when the run first opened it. Where it was never open before, what the quantised model
gives on this host must come out, within two steps.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from pytest_rknpu.errors import BoardChanged, BoardUnfit, ConformanceFailure, ModelError, ToolkitError
from pytest_rknpu.session.board_session import BoardSession
from pytest_rknpu.session.npu import Npu
from pytest_rknpu.session.versions import is_value
from pytest_rknpu.verdict import ItemRecord

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import LoadedModel

_MODEL = "probe_pointwise"
_STEPS = 2
_BUSY_PERCENT = 10
_LOOKS = 5
_LOOK_SECONDS = 1.0

# What makes results of one run incomparable when it changes in between.
_MUST_STAY = ("device_tree", "bsp", "kernel", "driver", "driver_api", "runtime", "runtime_library")


@dataclass(frozen=True)
class Fitness:
    """What a board was like when it was well. ``output`` is None where it cannot infer (``why_not``)."""

    versions: Mapping[str, str]
    load: tuple[int, ...] | None
    output: bytes | None
    why_not: str = ""


def fitness_of(session: object) -> Fitness | None:
    """Look at a board that was just opened; None where no agent is there to look.

    Raises BoardLost where the board does not come back from the inference.
    """
    if not isinstance(session, BoardSession):
        return None
    try:
        output, why_not = _infer(session)[1], ""
    except (ConformanceFailure, ModelError, ToolkitError, pytest.skip.Exception) as error:
        output, why_not = None, str(error).partition("\n")[0]
    return Fitness(dict(session.versions), _load(session.facts), output, why_not)


def require_fit(session: object, before: Fitness | None) -> list[str]:
    """Refuse a board that is not what it was; what could not be found out, in words.

    ``before`` is None where the board was never well in this run. Raises BoardUnfit, BoardLost.
    """
    if not isinstance(session, BoardSession):
        return []
    remarks = _same_versions(session, before.versions) if before is not None else []
    remarks += _idle(session, before)
    remarks += _infers(session, before)
    return remarks


def _same_versions(session: BoardSession, before: Mapping[str, str]) -> list[str]:
    now = session.versions
    pairs = [(name, before[name], now[name]) for name in _MUST_STAY if name in before and name in now]
    changed = [
        f"{name} was {old!r}, is {new!r}"
        for name, old, new in pairs
        if old != new and is_value(old) and is_value(new)
    ]
    if changed:
        raise BoardChanged(
            f"board {session.board.name} came back as another one: {'; '.join(changed)}. Results of one "
            "run hold for one set of versions: start a new run, or see which image the board boots",
        )
    return [
        f"{name} can no longer be read ({new})" for name, old, new in pairs if is_value(old) > is_value(new)
    ]


def _idle(session: BoardSession, before: Fitness | None) -> list[str]:
    load = _load(session.facts)
    was_busy = before is not None and before.load is not None and max(before.load, default=0) > _BUSY_PERCENT
    for _ in range(_LOOKS):
        if load is None:
            return ["whether the NPU is idle cannot be read"]
        if max(load, default=0) <= _BUSY_PERCENT or was_busy:
            return []
        time.sleep(_LOOK_SECONDS)
        load = _load(session.probe())
    raise BoardUnfit(
        f"board {session.board.name}: its NPU is busy ({load} percent) although nothing of this run is at "
        "work there: a job hangs in it, or another program uses it"
    )


def _infers(session: BoardSession, before: Fitness | None) -> list[str]:
    if before is not None and before.output is None:
        return [f"no inference was tried: it was not possible before either ({before.why_not})"]
    try:
        (model, data), output = _infer(session)
    except (ConformanceFailure, ModelError, ToolkitError, pytest.skip.Exception) as error:
        if before is None:
            return [f"no inference was possible: {str(error).partition(chr(10))[0]}"]
        raise BoardUnfit(
            f"board {session.board.name}: a small inference fails, and did not before: {error}"
        ) from None
    if before is not None and before.output != output:
        raise BoardUnfit(
            f"board {session.board.name}: a small inference gives other bytes than before it was lost"
        )
    # A stand-in's NPU does not compute.
    if before is None and not session.board.stand_in and not _as_on_this_host(model, data, output):
        raise BoardUnfit(f"board {session.board.name}: a small inference is more than {_STEPS} steps off")
    return []


def _infer(session: BoardSession) -> tuple[tuple[LoadedModel, bytes], bytes]:
    """The model with the input memory that it got, and the bytes of its output."""
    npu = Npu(session, ItemRecord("health", (), 0), 0)
    model = npu.model(_MODEL)
    data = npu.native_input(model, _pattern(model.description.inputs[0].shape))
    session.references.clear()  # it is to compute, not to remember
    try:
        return (model, data), npu.reference(model, [data])[0]
    except ConformanceFailure:
        session.reset()  # what it left would stand in the way of the first test
        raise


def _pattern(shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int8]]:
    return (np.arange(np.prod(shape)) * 37 % 256 - 128).astype(np.int8).reshape(shape)


def _as_on_this_host(model: LoadedModel, data: bytes, output: bytes) -> bool:
    from pytest_rknpu import models
    from pytest_rknpu.models.execute import run_onnx
    from pytest_rknpu.session.inference import dequantise, quantise
    from pytest_rknpu.session.layout import from_memory

    source, result = model.description.inputs[0], model.description.outputs[0]
    stored = from_memory(data, source.native, source.shape)
    real = run_onnx(models.load(_MODEL).qdq_onnx, dequantise(stored, source.native))[0]
    expected = quantise(real, result.native).astype(np.int32)
    actual = from_memory(output, result.native, result.shape).astype(np.int32)
    return bool(np.abs(expected.reshape(actual.shape) - actual).max(initial=0) <= _STEPS)


def _load(facts: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Percent of each core, None where the board does not tell."""
    value = facts.get("npu_load", {}).get("value")
    return None if value is None else tuple(cast("list[int]", value))

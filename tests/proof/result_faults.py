"""What a runtime may get wrong that the software board has no fault for: its answers, doctored by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from pytest_rknpu import models, prebuilt
from pytest_rknpu.emulator import pack
from pytest_rknpu.farm.run import Effort
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.measure import MemoryLayout
from pytest_rknpu.session import Npu, open_session
from pytest_rknpu.session.builds import Build
from pytest_rknpu.toolchain import BuildLog, Compiled
from pytest_rknpu.toolchain.memory_sizes import internal_range, weight_range
from tests.lite2.lite_boards import boards_with_lite
from tests.proof.doctored import DoctoredFault, Trials, new_record, replaced
from tests.proof.stored_logs import stored_log
from tests.suite_modules import suite

STORED = "probe_pointwise"


@contextmanager
def _npu() -> Iterator[Npu]:
    board = Board(name="faulty", soc="rk3588", runtime="emulator", seed=1)
    with open_session(board, seed=1) as session:
        yield Npu(session, new_record(), 1)  # type: ignore[arg-type]


def _sizes(weight_by: float, internal_by: float) -> Trials:
    """RKNN_QUERY_MEM_SIZE beside the build log of the same file: sizes that are factors off the log's."""

    def trials() -> Iterator[Any]:
        plan = stored_log().plan
        compiled = Compiled(SimpleNamespace(), "same", SimpleNamespace(), None, "2.5.0", True)  # type: ignore[arg-type]
        build = Build(compiled, BuildLog((plan,), "2.5.0", "2.5.0"), stored_log().graph)
        described = SimpleNamespace(
            weight_size=int(weight_range(plan)[1] * weight_by),
            internal_size=int(internal_range(plan)[1] * internal_by),
        )
        npu = SimpleNamespace(
            session=SimpleNamespace(board=SimpleNamespace(platform="rk3588")),
            model=lambda name: SimpleNamespace(sha256="same", description=described),
        )
        test = suite("memory/test_compiled_sizes.py").test_reported_sizes_agree_with_the_build_log
        yield test, (npu, lambda name: build, new_record(), "digits_cnn")

    return trials


def _stored_model(sign: int) -> Trials:
    """One weight of the stored model, times ``sign``."""

    def trials() -> Iterator[Any]:
        content = pack(_with_a_weight_times(sign), "rk3588")
        stored = replace(prebuilt.load(STORED, "rk3588"), content=content)
        module = suite("versions/test_stored_models.py")
        with _npu() as npu, replaced(module, "stored_model", lambda *_: stored):
            request = SimpleNamespace(getfixturevalue=lambda name: npu)
            yield module.test_stored_model_computes_the_same_bytes, (None, request, "2.5.0")

    return trials


def _with_a_weight_times(sign: int) -> bytes:
    graph = onnx.load_model_from_string(models.load(STORED).qdq_onnx)
    weight = next(each for each in graph.graph.initializer if numpy_helper.to_array(each).ndim == 4)
    values = numpy_helper.to_array(weight).copy()
    values.reshape(-1)[np.flatnonzero(values)[0]] *= sign
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    return graph.SerializeToString()


def _located(atoms: int) -> Trials:
    """Differences are looked for in a layout with a fraction of the channels in a group."""

    def trials() -> Iterator[Any]:
        module = suite("accuracy/test_localisation.py")
        locate = module.locate

        def elsewhere(actual: Any, expected: Any, threshold: float, layout: MemoryLayout) -> Any:
            return locate(actual, expected, threshold, replace(layout, atom=layout.atom // atoms))

        with _npu() as npu, replaced(module, "locate", elsewhere):
            yield module.test_a_stale_cache_line_is_found_where_it_is, (npu, "probe_wide")

    return trials


def _lite(fault: str | None) -> Trials:
    def trials() -> Iterator[Any]:
        test = suite("accuracy/test_lite2.py").test_equal_bytes_in_every_input_form
        with boards_with_lite() as npu_with:
            yield test, (npu_with(fault), "probe_wide", Effort.QUICK)

    return trials


RESULT_FAULTS = (
    DoctoredFault(
        "weights-over-reported",
        "RKNN_QUERY_MEM_SIZE reports twice the weights that the compiler laid out",
        ("MEM-01",),
        _sizes(weight_by=2.0, internal_by=1.0),
    ),
    DoctoredFault(
        "internal-under-reported",
        "RKNN_QUERY_MEM_SIZE reports a quarter of the internal memory of the compiler's plan",
        ("MEM-01",),
        _sizes(weight_by=1.0, internal_by=0.25),
    ),
    DoctoredFault(
        "stored-model-computes-otherwise",
        "A model that an older toolkit built computes with one weight of another sign",
        ("VER-06",),
        _stored_model(-1),
    ),
    DoctoredFault(
        "located-in-another-layout",
        "Differing elements are looked for in a layout with half as many channels in a group",
        ("ACC-07",),
        _located(atoms=2),
    ),
    DoctoredFault(
        "lite2-gives-another-byte",
        "RKNN-Toolkit-Lite2 gives one byte otherwise",
        ("ACC-03",),
        _lite("wrong-byte"),
    ),
    DoctoredFault(
        "lite2-does-not-transpose",
        "RKNN-Toolkit-Lite2 takes NCHW input for NHWC",
        ("ACC-03",),
        _lite("nchw-not-transposed"),
    ),
)

SOUND: tuple[Trials, ...] = (_sizes(1.0, 1.0), _stored_model(1), _located(atoms=1), _lite(None))
"""The same without a fault."""

"""MEM-09: zero copy equals the copying API, for each layout and where rows are longer than the width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pytest_rknpu.agent.abi import rknn_query_cmd as Query
from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.session import BIDIRECTIONAL, LoadedModel, Npu, Program
from pytest_rknpu.session.layout import from_memory, row_pixels, to_memory
from pytest_rknpu.session.references import by_the_copying_api, passed_through
from pytest_rknpu.session.zero_copy import bound_attr

MODELS = ["probe_pointwise", "probe_chain", "probe_wide", "probe_stride", "digits_cnn"]
# Where rknn_run was seen not to maintain an output that is not native (see _zero_copy).
LEFT_TO_THE_APPLICATION = ("rk3566", "rk3568")
# Zero copy of uint8 pixels is promised for these only (guide 1.5.2).
IMAGE_CHANNELS = (1, 3, 4)


@pytest.mark.requirement("MEM-09")
@pytest.mark.parametrize("output", ["native", "nhwc", "logical-int8", "logical-float32"])
@pytest.mark.models(*MODELS)
def test_zero_copy_equals_the_copying_api(npu: Npu, named: LoadedModel, output: str) -> None:
    """Images as uint8 NHWC, in longer rows where w_stride says so; other inputs native; each output form."""
    npu.require_function("rknn_inputs_set")
    if output != "native" and not npu.can_sync and npu.soc.name in LEFT_TO_THE_APPLICATION:
        pytest.skip(
            f"{npu.soc.name}: librknnrt 1.5.2 was seen to maintain another memory than an output that is not "
            "native, and this runtime exports no rknn_mem_sync by which the application could"
        )
    given, attr = _given(npu, named), _output_attr(npu, named, output)
    copied = _copying(npu, named, given.copied, want_float=output == "logical-float32")
    actual = _zero_copy(npu, named, given, attr)
    tensor = named.description.inputs[0]
    padding = row_pixels(given.attr, tensor.shape[3]) - tensor.shape[3]
    npu.record.measure("w_stride minus width", padding, "pixels")
    shape = named.description.outputs[0].shape
    npu.require_equal(copied, from_memory(actual, attr, shape).tobytes(), f"zero copy with {output} output")


@pytest.mark.requirement("MEM-09")
@pytest.mark.models(*MODELS)
def test_native_pass_through_equals_the_copying_api(npu: Npu, named: LoadedModel) -> None:
    """The same native bytes passed through by zero copy and by rknn_inputs_set."""
    npu.require_function("rknn_inputs_set")
    data = npu.native_input(named, npu.random_tensor(named))
    given = Given(bound_attr(named.description.inputs[0].native, "input"), data, {})
    output = named.description.outputs[0]
    expected = by_the_copying_api(npu, named, [data])[0]
    actual = _zero_copy(npu, named, given, dict(output.native))
    npu.require_equal(
        from_memory(expected, output.native, output.shape).tobytes(),
        from_memory(actual, output.native, output.shape).tobytes(),
        "zero copy with native, passed-through input",
    )


@dataclass(frozen=True)
class Given:
    """One input for both families of calls: attribute and bytes of a memory, and the ``rknn_input``."""

    attr: dict[str, Any]
    memory: bytes
    copied: dict[str, Any]


def _given(npu: Npu, model: LoadedModel) -> Given:
    """Random uint8 pixels for an image, else random native bytes that are passed through."""
    tensor = model.description.inputs[0]
    if tensor.shape[1] not in IMAGE_CHANNELS:
        data = npu.native_input(model, npu.random_tensor(model))
        return Given(bound_attr(tensor.native, "input"), data, passed_through(model, data))
    pixels = npu.random.integers(0, 256, tensor.shape, dtype=np.uint8)
    form = {"type": int(Type.RKNN_TENSOR_UINT8), "fmt": int(Format.RKNN_TENSOR_NHWC), "pass_through": 0}
    attr = {**tensor.logical, **form}
    dense = pixels.transpose(0, 2, 3, 1).tobytes()
    return Given(attr, to_memory(pixels, attr), {"index": 0, "data": dense, **form})


def _output_attr(npu: Npu, model: LoadedModel, output: str) -> dict[str, Any]:
    tensor = model.description.outputs[0]
    if output == "native":
        return dict(tensor.native)
    if output == "nhwc":
        program = Program()
        program.init("asked", model.sha256)
        program.query("asked", Query.RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR, "attr")
        program.destroy("asked")
        return dict(npu.execute(program)["attr"])
    elements = int(np.prod(tensor.shape))
    dtype, width = (
        (Type.RKNN_TENSOR_FLOAT32, 4) if output == "logical-float32" else (Type.RKNN_TENSOR_INT8, 1)
    )
    size = max(elements * width, int(tensor.logical["size_with_stride"]) if width == 1 else 0)
    return {**tensor.logical, "type": int(dtype), "size": elements * width, "size_with_stride": size}


def _copying(npu: Npu, model: LoadedModel, given: dict[str, Any], *, want_float: bool) -> bytes:
    """Output 0 of the general API, NCHW: int8, or float32."""
    program = Program()
    program.init("copying", model.sha256)
    program.set_inputs("copying", [given])
    program.run("copying")
    program.get_outputs("copying", "output", want_float=want_float)
    program.destroy("copying")
    data: bytes = npu.execute(program)["output"][0]
    return data


def _zero_copy(npu: Npu, model: LoadedModel, given: Given, output: dict[str, Any]) -> bytes:
    """The bytes of output 0's memory.

    Synced where that can be: whether rknn_run maintains an output that is not native is open (on rk3566 it
    was seen not to), and not the question here. Both ways, as the CPU may have written it.
    """
    program = Program()
    program.init("a", model.sha256)
    for memory, attr in (("input", given.attr), ("output", output)):
        program.create_mem(memory, "a", max(int(attr["size_with_stride"]), int(attr["size"])))
        program.bind("a", memory, attr)
    program.write("input", given.memory)
    program.run("a")
    if "rknn_mem_sync" in npu.session.functions:
        program.sync("output", BIDIRECTIONAL, "a")
    program.read("output", "output")
    for memory in ("input", "output"):
        program.destroy_mem(memory, "a")
    program.destroy("a")
    data: bytes = npu.execute(program)["output"]
    return data

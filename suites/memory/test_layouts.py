"""MEM-09: zero copy equals the copying API, for each layout and where rows are longer than the width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.session import LoadedModel, Npu, Program
from pytest_rknpu.session.layout import from_memory, row_pixels, to_memory
from pytest_rknpu.session.zero_copy import bound_attr

MODELS = ["probe_pointwise", "probe_chain", "probe_wide", "probe_stride", "digits_cnn"]


@pytest.mark.requirement("MEM-09")
@pytest.mark.parametrize("output", ["native", "logical-int8", "logical-float32"])
@pytest.mark.parametrize("name", MODELS)
def test_zero_copy_equals_the_copying_api(npu: Npu, name: str, output: str) -> None:
    """uint8 NHWC input, written row by row where w_stride is longer; outputs native or converted."""
    npu.require_function("rknn_inputs_set")
    model = npu.model(name)
    pixels = npu.random.integers(0, 256, model.description.inputs[0].shape, dtype=np.uint8)
    copied_int8, copied_float = _copying(npu, model, pixels)
    attr = _output_attr(model, output)
    values = npu.execute(_zero_copy(model, pixels, attr))
    shape = model.description.outputs[0].shape
    actual = from_memory(values["output"], attr, shape)
    expected = copied_float if output == "logical-float32" else copied_int8
    npu.record.measure("w_stride minus width", _input_stride(model) - shape_width(model), "pixels")
    npu.require_equal(expected.reshape(shape).tobytes(), actual.tobytes(), f"zero copy with {output} output")


@pytest.mark.requirement("MEM-09")
@pytest.mark.parametrize("name", MODELS)
def test_native_pass_through_equals_converted_input(npu: Npu, name: str) -> None:
    """The same int8 tensor as native bytes passed through, and by the careful reference way."""
    model = npu.model(name)
    tensor = npu.random_tensor(model)
    native = model.description.inputs[0].native
    data = to_memory(tensor, native)
    expected = npu.reference(model, [data])[0]
    output = model.description.outputs[0]
    program = _open(model, bound_attr(native, "input"), dict(output.native))
    program.write("input", data)
    program.run("a")
    program.read("output", "output")
    actual = npu.execute(program)["output"]
    npu.require_equal(
        from_memory(expected, output.native, output.shape).tobytes(),
        from_memory(actual, output.native, output.shape).tobytes(),
        "zero copy with native, passed-through input",
    )


def shape_width(model: LoadedModel) -> int:
    """Width of input 0 in pixels."""
    return model.description.inputs[0].shape[3]


def _input_attr(model: LoadedModel) -> dict[str, Any]:
    """Input 0 as uint8 NHWC pixels that the runtime or NPU converts."""
    logical = model.description.inputs[0].logical
    return {
        **logical,
        "type": int(Type.RKNN_TENSOR_UINT8),
        "fmt": int(Format.RKNN_TENSOR_NHWC),
        "pass_through": 0,
    }


def _input_stride(model: LoadedModel) -> int:
    return row_pixels(model.description.inputs[0].logical, shape_width(model))


def _output_attr(model: LoadedModel, output: str) -> dict[str, Any]:
    tensor = model.description.outputs[0]
    if output == "native":
        return dict(tensor.native)
    elements = int(np.prod(tensor.shape))
    dtype, width = (
        (Type.RKNN_TENSOR_FLOAT32, 4) if output == "logical-float32" else (Type.RKNN_TENSOR_INT8, 1)
    )
    size = max(elements * width, int(tensor.logical["size_with_stride"]) if width == 1 else 0)
    return {**tensor.logical, "type": int(dtype), "size": elements * width, "size_with_stride": size}


def _copying(npu: Npu, model: LoadedModel, pixels: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Output 0 of the general API, as int8 and as float32."""
    dense = pixels.transpose(0, 2, 3, 1).tobytes()
    entry = {
        "index": 0,
        "data": dense,
        "type": int(Type.RKNN_TENSOR_UINT8),
        "fmt": int(Format.RKNN_TENSOR_NHWC),
    }
    program = Program()
    program.init("copying", model.sha256)
    for want_float in (False, True):
        program.set_inputs("copying", [{**entry, "pass_through": 0}])
        program.run("copying")
        program.get_outputs("copying", f"float {want_float}", want_float=want_float)
    program.destroy("copying")
    values = npu.execute(program)
    return np.frombuffer(values["float False"][0], np.int8), np.frombuffer(
        values["float True"][0], np.float32
    )


def _zero_copy(model: LoadedModel, pixels: np.ndarray[Any, Any], output: dict[str, Any]) -> Program:
    attr = _input_attr(model)
    program = _open(model, attr, output)
    program.write("input", to_memory(pixels, attr))
    program.run("a")
    program.read("output", "output")
    return program


def _open(model: LoadedModel, input_attr: dict[str, Any], output_attr: dict[str, Any]) -> Program:
    program = Program()
    program.init("a", model.sha256)
    for memory, attr in (("input", input_attr), ("output", output_attr)):
        program.create_mem(memory, "a", max(int(attr["size_with_stride"]), int(attr["size"])))
        program.bind("a", memory, attr)
    return program

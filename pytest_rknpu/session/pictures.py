"""Inference with pictures: bytes that the runtime or the NPU normalises and quantises itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.session.inference import dequantise
from pytest_rknpu.session.layout import Attr, from_memory, to_memory
from pytest_rknpu.session.program import Program

if TYPE_CHECKING:
    from pytest_rknpu.models.user_data import Floats
    from pytest_rknpu.session.npu import LoadedModel, Npu


def infer_pictures(npu: Npu, loaded: LoadedModel, pixels: npt.NDArray[np.uint8]) -> list[Floats]:
    """Pictures (N, C, H, W) through zero copy as uint8 NHWC without pass_through; per output (N, ...).

    Mean and deviation are then those that the model was compiled with (C API reference: rknn_set_io_mem).
    """
    attr = picture_attr(loaded)
    program = Program()
    program.init("pictures", loaded.sha256)
    program.create_mem("picture", "pictures", int(attr["size_with_stride"]))
    program.bind("pictures", "picture", attr)
    for tensor in loaded.description.outputs:
        program.create_mem(f"output {tensor.index}", "pictures", tensor.native_size)
        program.bind("pictures", f"output {tensor.index}", dict(tensor.native))
    for number, picture in enumerate(pixels):
        program.write("picture", to_memory(picture[np.newaxis], attr))
        program.run("pictures")
        for tensor in loaded.description.outputs:
            program.read(f"output {tensor.index}", f"{number} {tensor.index}")
    program.destroy_mem("picture", "pictures")
    for tensor in loaded.description.outputs:
        program.destroy_mem(f"output {tensor.index}", "pictures")
    program.destroy("pictures")
    values = npu.execute(program)
    return [
        np.concatenate(
            [
                dequantise(from_memory(values[f"{n} {t.index}"], t.native, t.shape), t.native)
                for n in range(len(pixels))
            ]
        )
        for t in loaded.description.outputs
    ]


def picture_attr(loaded: LoadedModel) -> Attr:
    """Input 0 as uint8 NHWC pixels, with the strides that the runtime reported for the logical tensor."""
    logical = loaded.description.inputs[0].logical
    kind: dict[str, Any] = {
        "type": int(Type.RKNN_TENSOR_UINT8),
        "fmt": int(Format.RKNN_TENSOR_NHWC),
        "pass_through": 0,
    }
    return {**logical, **kind}

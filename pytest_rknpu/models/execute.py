"""Host references: a model run whole by ONNX Runtime, in float or in its quantised form.

Graph optimisation is off: fused int8 kernels differ between processors by a step, the operators as the file
has them do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper

from pytest_rknpu.errors import ModelError

_INPUT_TYPES = {
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    **{f"tensor({np.dtype(kind).name})": kind for kind in (np.int8, np.int16, np.int32, np.int64)},
    **{f"tensor({np.dtype(kind).name})": kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64)},
    "tensor(bool)": np.bool_,
}


def run_onnx(model: bytes, inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """The outputs, each (N, ...), for inputs (N, C, H, W) of a model with one input, run one by one.

    ModelError: ONNX Runtime refuses the model.
    """
    return run_onnx_inputs(model, [inputs])


def run_onnx_inputs(
    model: bytes, inputs: Sequence[NDArray[np.float32]], names: Sequence[str | None] = ()
) -> list[NDArray[np.float32]]:
    """As ``run_onnx``, with an array (N, ...) for each input: by ``names``, or in the graph's order.

    ModelError: ONNX Runtime refuses the model or the inputs.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    # ONNX Runtime's exceptions have no common base of their own.
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        types = {entry.name: entry.type for entry in session.get_inputs()}
        sources = [name or default for name, default in zip_longest(names, types)]
        typed = {
            name: _as_declared(array, types.get(name, ""), name)
            for name, array in zip(sources, inputs, strict=True)
        }
        results: list[list[Any]] = [
            session.run(None, {name: array[number][None] for name, array in typed.items()})
            for number in range(len(inputs[0]))
        ]
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"ONNX Runtime refuses the model: {error}") from error
    return [_stacked([result[i] for result in results]) for i in range(len(session.get_outputs()))]


def _as_declared(array: NDArray[np.float32], declared: str, name: str) -> NDArray[Any]:
    """The data in the type of the graph's input: token numbers are int64, say."""
    dtype = np.dtype(_INPUT_TYPES.get(declared, np.float32))
    typed = array.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(typed, array):
        raise ModelError(f"input {name!r} takes {dtype}, and the data hold other numbers")
    return typed


def _stacked(outputs: list[Any]) -> NDArray[np.float32]:
    """An output of all samples, (N, ...); scalars become one element each."""
    return np.concatenate([np.atleast_1d(np.asarray(output)) for output in outputs])


def output_steps(qdq_onnx: bytes) -> list[float]:
    """For each output of a QDQ model its quantisation step, in the unit of the output."""
    graph = onnx.load_model_from_string(qdq_onnx).graph
    constants = {constant.name: constant for constant in graph.initializer}
    producers = {name: node for node in graph.node for name in node.output}
    steps = []
    for output in graph.output:
        producer = producers[output.name]
        if producer.op_type != "DequantizeLinear":
            raise ModelError(f"output {output.name!r} is not quantised: {producer.op_type} makes it")
        steps.append(float(numpy_helper.to_array(constants[producer.input[1]])))
    return steps

"""What a runtime says about a loaded model: counts, attributes, memory sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.agent.abi import rknn_query_cmd as Query
from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.session.layout import Attr
from pytest_rknpu.session.program import Program


@dataclass(frozen=True)
class TensorDescription:
    """One input or output.

    ``logical`` answers RKNN_QUERY_INPUT_ATTR or OUTPUT_ATTR, ``native`` the NATIVE form: what the NPU reads or
    writes. On the mini runtime both are the native form (C API reference, table 4-1).
    """

    index: int
    logical: Attr
    native: Attr

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape; NCHW where there are four dimensions."""
        dims = [int(size) for size in self.logical["dims"]]
        if self.logical["fmt"] == Format.RKNN_TENSOR_NHWC and len(dims) == 4:
            return (dims[0], dims[3], dims[1], dims[2])
        if self.logical["fmt"] == Format.RKNN_TENSOR_NC1HWC2 and len(dims) == 5:
            return (dims[0], dims[1] * dims[4], dims[2], dims[3])
        return tuple(dims)

    @property
    def native_size(self) -> int:
        """Bytes that a zero-copy memory of the native form needs."""
        return max(int(self.native["size_with_stride"]), int(self.native["size"]))


@dataclass(frozen=True)
class ModelDescription:
    """The answers of one context to every query that the suites build on. Sizes in bytes."""

    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    weight_size: int
    internal_size: int
    api_version: str
    driver_version: str


def counting_program(model: str) -> Program:
    """Asks how many inputs and outputs ``model`` (a stored sha256) has."""
    program = Program()
    program.init("description", model)
    program.query("description", Query.RKNN_QUERY_IN_OUT_NUM, "counts")
    program.destroy("description")
    return program


def describing_program(model: str, n_input: int, n_output: int) -> Program:
    """Asks for all attributes, the memory sizes and the versions."""
    program = Program()
    program.init("description", model)
    for index in range(n_input):
        program.query("description", Query.RKNN_QUERY_INPUT_ATTR, f"input {index}", index=index)
        program.query("description", Query.RKNN_QUERY_NATIVE_INPUT_ATTR, f"native input {index}", index=index)
    for index in range(n_output):
        program.query("description", Query.RKNN_QUERY_OUTPUT_ATTR, f"output {index}", index=index)
        program.query("description", Query.RKNN_QUERY_NATIVE_OUTPUT_ATTR, f"native output {index}", index=index)
    program.query("description", Query.RKNN_QUERY_MEM_SIZE, "memory")
    program.query("description", Query.RKNN_QUERY_SDK_VERSION, "sdk")
    program.destroy("description")
    return program


def description_from(values: Mapping[str, Any], n_input: int, n_output: int) -> ModelDescription:
    """Read the values that describing_program saved."""

    def tensors(kind: str, count: int) -> tuple[TensorDescription, ...]:
        return tuple(
            TensorDescription(index, values[f"{kind} {index}"], values[f"native {kind} {index}"])
            for index in range(count)
        )

    return ModelDescription(
        inputs=tensors("input", n_input),
        outputs=tensors("output", n_output),
        weight_size=int(values["memory"]["total_weight_size"]),
        internal_size=int(values["memory"]["total_internal_size"]),
        api_version=str(values["sdk"]["api_version"]),
        driver_version=str(values["sdk"]["drv_version"]),
    )

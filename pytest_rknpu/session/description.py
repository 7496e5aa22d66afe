"""What a runtime says about a loaded model: counts, attributes, memory sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_rknpu.agent.abi import RKNN_FLAG_MEM_ALLOC_OUTSIDE
from pytest_rknpu.agent.abi import rknn_query_cmd as Query
from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.session.layout import Attr
from pytest_rknpu.session.program import Program


@dataclass(frozen=True)
class TensorDescription:
    """One input or output.

    ``logical`` answers RKNN_QUERY_INPUT_ATTR or OUTPUT_ATTR, ``native`` the NATIVE form: what the NPU reads
    or writes. On the mini runtime both are the native form (C API reference, table 4-1), so that the logical
    ``shape`` (NCHW where there are four dimensions) has to come from the model.
    """

    index: int
    logical: Attr
    native: Attr
    shape: tuple[int, ...]

    @property
    def native_size(self) -> int:
        """Bytes that a zero-copy memory of the native form needs."""
        return max(int(self.native["size_with_stride"]), int(self.native["size"]))


@dataclass(frozen=True)
class MemorySizes:
    """``rknn_mem_size`` as RKNN_QUERY_MEM_SIZE filled it, in bytes.

    ``from_outside``: of a context to which the application is to give its memory, so that it has none yet.
    """

    weight: int
    internal: int
    dma: int
    sram: int
    free_sram: int
    from_outside: bool


@dataclass(frozen=True)
class ModelDescription:
    """The answers of one context to every query that the suites build on. Sizes in bytes."""

    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    weight_size: int
    internal_size: int


def with_shapes(
    description: ModelDescription, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]
) -> ModelDescription:
    """The description with the model's own logical shapes; raises ConformanceFailure for other counts."""
    counts = (len(description.inputs), len(description.outputs))
    if counts != (len(inputs), len(outputs)):
        raise ConformanceFailure(
            f"the runtime reports {counts[0]} inputs and {counts[1]} outputs, the model has {len(inputs)} "
            f"and {len(outputs)}"
        )
    return replace(
        description,
        inputs=tuple(replace(t, shape=shape) for t, shape in zip(description.inputs, inputs, strict=True)),
        outputs=tuple(replace(t, shape=shape) for t, shape in zip(description.outputs, outputs, strict=True)),
    )


def _shape_told_by(logical: Attr) -> tuple[int, ...]:
    dims = [int(size) for size in logical["dims"]]
    if logical["fmt"] == Format.RKNN_TENSOR_NHWC and len(dims) == 4:
        return (dims[0], dims[3], dims[1], dims[2])
    if logical["fmt"] == Format.RKNN_TENSOR_NC1HWC2 and len(dims) == 5:
        return (dims[0], dims[1] * dims[4], dims[2], dims[3])
    return tuple(dims)


def counting_program(model: str) -> Program:
    """Asks how many inputs and outputs ``model`` (a stored sha256) has."""
    program = Program()
    program.init("description", model)
    program.query("description", Query.RKNN_QUERY_IN_OUT_NUM, "counts")
    program.destroy("description")
    return program


def describing_program(model: str, n_input: int, n_output: int) -> Program:
    """Asks for all attributes."""
    program = Program()
    program.init("description", model)
    for index in range(n_input):
        program.query("description", Query.RKNN_QUERY_INPUT_ATTR, f"input {index}", index=index)
        program.query("description", Query.RKNN_QUERY_NATIVE_INPUT_ATTR, f"native input {index}", index=index)
    for index in range(n_output):
        program.query("description", Query.RKNN_QUERY_OUTPUT_ATTR, f"output {index}", index=index)
        program.query(
            "description", Query.RKNN_QUERY_NATIVE_OUTPUT_ATTR, f"native output {index}", index=index
        )
    program.destroy("description")
    return program


def version_program(model: str) -> Program:
    """Asks for nothing but the versions, so that nothing else that a runtime refuses hides them."""
    program = Program()
    program.init("description", model)
    program.query("description", Query.RKNN_QUERY_SDK_VERSION, "sdk")
    program.destroy("description")
    return program


def sizing_program(model: str) -> Program:
    """Asks for the memory sizes of ``model`` of a context like any other."""
    program = Program()
    program.init("description", model)
    program.query("description", Query.RKNN_QUERY_MEM_SIZE, "sizes", expect="any")
    program.destroy("description")
    return program


def flagged_sizing_program(model: str) -> Program:
    """Asks for them of a context whose memory comes from outside.

    The C API reference says that the query needs that flag; the SDK's own samples go without.
    """
    program = Program()
    program.init("description", model, flags=RKNN_FLAG_MEM_ALLOC_OUTSIDE)
    program.query("description", Query.RKNN_QUERY_MEM_SIZE, "sizes")
    program.destroy("description")
    return program


def sizes_from(answer: Mapping[str, Any], *, from_outside: bool) -> MemorySizes:
    """Read the answer that one of the two sizing programs saved."""
    return MemorySizes(
        weight=int(answer["total_weight_size"]),
        internal=int(answer["total_internal_size"]),
        dma=int(answer["total_dma_allocated_size"]),
        sram=int(answer["total_sram_size"]),
        free_sram=int(answer["free_sram_size"]),
        from_outside=from_outside,
    )


def description_from(
    values: Mapping[str, Any], sizes: MemorySizes, n_input: int, n_output: int
) -> ModelDescription:
    """Read the values that describing_program saved."""

    def tensors(kind: str, count: int) -> tuple[TensorDescription, ...]:
        return tuple(
            TensorDescription(
                index,
                logical=values[f"{kind} {index}"],
                native=values[f"native {kind} {index}"],
                shape=_shape_told_by(values[f"{kind} {index}"]),
            )
            for index in range(count)
        )

    return ModelDescription(
        inputs=tensors("input", n_input),
        outputs=tensors("output", n_output),
        weight_size=sizes.weight,
        internal_size=sizes.internal,
    )

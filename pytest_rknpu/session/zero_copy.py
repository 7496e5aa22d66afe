"""One context whose inputs and outputs are bound to memories: the zero-copy set-up of the guide, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_rknpu.agent.abi import rknn_mem_alloc_flags as AllocFlags
from pytest_rknpu.errors import Inconclusive
from pytest_rknpu.session.description import TensorDescription
from pytest_rknpu.session.layout import Attr, dtype_of, to_memory
from pytest_rknpu.session.program import Program

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import LoadedModel

CACHEABLE = AllocFlags.RKNN_FLAG_MEMORY_CACHEABLE
NON_CACHEABLE = AllocFlags.RKNN_FLAG_MEMORY_NON_CACHEABLE


@dataclass(frozen=True)
class ZeroCopy:
    """Names and records one zero-copy context; several can live in one program.

    ``alloc_flags`` None allocates with rknn_create_mem, else with rknn_create_mem2. Native attributes are
    bound, inputs passed through.
    """

    context: str
    model: LoadedModel
    flags: int = 0
    alloc_flags: int | None = None

    @property
    def input(self) -> str:
        """Name of input 0's memory."""
        return f"{self.context} input 0"

    @property
    def output(self) -> str:
        """Name of output 0's memory."""
        return f"{self.context} output 0"

    @property
    def input_size(self) -> int:
        """Bytes of input 0, native."""
        return self.model.description.inputs[0].native_size

    @property
    def output_size(self) -> int:
        """Bytes of output 0, native."""
        return self.model.description.outputs[0].native_size

    def compare_output(self, program: Program, expected: Sequence[bytes], save: str) -> None:
        """Record comparing output 0 with entry i mod n of ``expected`` in iteration i of a repeat.

        Padding of the native layout is left out: no document promises what is in it.
        """
        mask = significant_bytes(self.model.description.outputs[0])
        program.compare_cycle(self.output, expected, save, mask=mask)

    def open(self, program: Program) -> None:
        """Record rknn_init, and creating and binding every memory."""
        program.init(self.context, self.model.sha256, flags=self.flags)
        self.bind(program)

    def bind(self, program: Program) -> None:
        """Record creating and binding every memory of a context that exists already."""
        description = self.model.description
        for kind, tensors in (("input", description.inputs), ("output", description.outputs)):
            for tensor in tensors:
                memory = f"{self.context} {kind} {tensor.index}"
                program.create_mem(memory, self.context, tensor.native_size, alloc_flags=self.alloc_flags)
                program.bind(self.context, memory, bound_attr(tensor.native, kind))

    def close(self, program: Program) -> None:
        """Record destroying every memory, then the context (as the SDK's samples do)."""
        description = self.model.description
        for kind, tensors in (("input", description.inputs), ("output", description.outputs)):
            for tensor in tensors:
                program.destroy_mem(f"{self.context} {kind} {tensor.index}", self.context)
        program.destroy(self.context)


def require_feeds_itself(model: LoadedModel) -> None:
    """Inconclusive where a native output of the model is no native input of the same model, byte for byte."""
    source, result = model.description.inputs[0], model.description.outputs[0]
    fields = ("fmt", "type", "dims", "w_stride", "size_with_stride")
    other = [field for field in fields if source.native[field] != result.native[field]]
    if other:
        raise Inconclusive(
            f"{model.name}: output and input differ in {', '.join(other)} of their native attributes on this "
            "board, so that one memory cannot be both"
        )


def significant_bytes(tensor: TensorDescription) -> bytes | None:
    """A mask over the native memory: 0xFF where the tensor's elements are. None where all of it is tensor."""
    if len(tensor.shape) != 4:
        used = int(np.prod(tensor.shape)) * dtype_of(tensor.native).itemsize
        mask = b"\xff" * used + bytes(tensor.native_size - used)
    else:
        dtype = dtype_of(tensor.native)
        ones = np.frombuffer(b"\xff" * dtype.itemsize, dtype)[0]
        mask = to_memory(np.full(tensor.shape, ones, dtype), tensor.native)
    return mask if 0 in mask else None


def bound_attr(native: Attr, kind: str) -> dict[str, Any]:
    """The native attribute as rknn_set_io_mem gets it: inputs are passed through, without conversion."""
    return {**native, "pass_through": 1} if kind == "input" else dict(native)

"""rknn_run: cache maintenance, loading the inputs, one job per layer, handing out the outputs."""

from __future__ import annotations

import time
import zlib
from dataclasses import replace
from typing import Literal

from pytest_rknpu.agent.abi import ErrorCode, InitFlag, MemorySyncMode
from pytest_rknpu.emulator import log
from pytest_rknpu.emulator.forms import load, store
from pytest_rknpu.emulator.hooks import OutputWrite
from pytest_rknpu.emulator.memories import sync
from pytest_rknpu.emulator.memory import Storage
from pytest_rknpu.emulator.state import Binding, Context, Part, Rejected, State

_NO_FLUSH = {
    "inputs": InitFlag.RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE,
    "outputs": InitFlag.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE,
}


def run(state: State, handle: int, extend: int) -> None:
    """rknn_run: blocks until the outputs are written. ``extend`` is not read (C API reference: pass NULL)."""
    started_ns = time.perf_counter_ns()
    with state.lock:
        context = state.context(handle)
    with context.lock:
        with state.lock:
            state.context(handle)
            frame = _Frame(state, context)
            frame.begin()
        try:
            frame.compute()
        finally:
            with state.lock:
                frame.end()
        frame.take_its_time(started_ns)


class _Frame:
    """One run of one context; it holds what it uses from ``begin`` to ``end``, whoever destroys it."""

    def __init__(self, state: State, context: Context) -> None:
        self._state, self._context = state, context
        invalid_input, invalid_output = ErrorCode.RKNN_ERR_INPUT_INVALID, ErrorCode.RKNN_ERR_OUTPUT_INVALID
        self._inputs = _bound(state, context.inputs, invalid_input, "input")
        self._outputs = _bound(state, _outputs(state, context), invalid_output, "output")
        self._weights = _given(state, context, context.weights, "weight")
        self._internal = _given(state, context, context.internal, "internal")
        if state.hooks.run_refuses_small_internal and self._internal.size < context.model.internal_size:
            raise Rejected(ErrorCode.RKNN_ERR_FAIL, f"{self._internal.size} bytes of internal memory")
        parts = [binding.part for binding in (*self._inputs, *self._outputs)] + [
            self._weights,
            self._internal,
        ]
        self._fingerprint = 0  # of the inputs, for a latency model
        self._storages: list[Storage] = list({id(part.storage): part.storage for part in parts}.values())

    @property
    def _zero_copy(self) -> bool:
        return any(binding.memory for binding in self._outputs)

    def begin(self) -> None:
        """Hold every storage and maintain the caches of the inputs."""
        for storage in self._storages:
            storage.references += 1
        self._context.layer_microseconds = []
        self._maintain("inputs", self._inputs, MemorySyncMode.RKNN_MEMORY_SYNC_TO_DEVICE)

    def compute(self) -> None:
        """Load, compute, store; between any two jobs other contexts may have theirs and caches may evict."""
        started = time.perf_counter_ns()
        if self._zero_copy:
            self._state.hooks.start_run()
        with self._state.queue.job(), self._state.lock:
            self._age()
            self._load_inputs()
        for number in range(len(self._context.model.layers)):
            with self._state.queue.job():
                self._layer(number)
        with self._state.queue.job(), self._state.lock:
            self._store_outputs()
            for storage in self._storages:
                storage.age_after_run()
            self._maintain("outputs", self._outputs, MemorySyncMode.RKNN_MEMORY_SYNC_FROM_DEVICE)
        self._context.run_microseconds = (time.perf_counter_ns() - started) // 1000
        self._context.runs += 1
        complaint = self._state.hooks.run_error_line()
        if complaint:
            log.error(complaint)

    def take_its_time(self, started_ns: int) -> None:
        """Wait as the latency model has it, where there is one."""
        context, pace = self._context, self._state.platform.pace
        if pace is not None:
            layers = len(context.model.layers)
            context.run_microseconds = pace.end_of_run(
                started_ns, context.handle, layers, context.core_mask, self._fingerprint
            )

    def end(self) -> None:
        """Let go of what `begin` held."""
        for storage in self._storages:
            self._state.let_go(storage)

    def _age(self) -> None:
        for storage in self._storages:
            storage.age()

    def _maintain(
        self, side: Literal["inputs", "outputs"], bindings: list[Binding], mode: MemorySyncMode
    ) -> None:
        forbidden = self._state.platform.honours_flush_flags and self._context.has(_NO_FLUSH[side])
        if forbidden or not self._state.hooks.run_maintains(side):
            return
        for number, binding in enumerate(bindings):
            if binding.memory is not None and self._is_maintained(side, number, binding):
                sync(self._state, binding.memory, mode)

    def _is_maintained(self, side: Literal["inputs", "outputs"], number: int, binding: Binding) -> bool:
        hooks, model = self._state.hooks, self._context.model
        if binding.is_import and not hooks.run_maintains_imports:
            return False
        if side == "inputs" or hooks.run_maintains_converted_outputs:
            return True
        shape = model.tensors[model.outputs[number].tensor].shape
        return binding.form == self._state.layouts.native_output(shape)

    def _load_inputs(self) -> None:
        model = self._context.model
        for port, binding in zip(model.inputs, self._inputs, strict=True):
            tensor = model.tensors[port.tensor]
            stored = binding.part.read(0, binding.form.size_with_stride)
            self._fingerprint = zlib.crc32(stored.tobytes(), self._fingerprint)
            values = load(stored, binding.form, tensor)
            self._internal.write(tensor.offset, values.reshape(-1).view("uint8"))

    def _layer(self, number: int) -> None:
        model = self._context.model
        layer = model.layers[number]
        started = time.perf_counter_ns()
        activations = {
            name: self._internal.read(model.tensors[index].offset, model.tensors[index].size)
            .view("int8")
            .reshape(model.tensors[index].shape)
            for name, index in layer.feeds
        }
        weights = self._weights.read(0, model.weight_size)
        result = self._context.engine.run(number, activations, weights)
        with self._state.lock:
            self._internal.write(model.tensors[layer.output].offset, result.reshape(-1).view("uint8"))
            self._age()
        self._context.layer_microseconds.append((time.perf_counter_ns() - started) // 1000)

    def _store_outputs(self) -> None:
        context, model = self._context, self._context.model
        for index, (port, binding) in enumerate(zip(model.outputs, self._outputs, strict=True)):
            tensor = model.tensors[port.tensor]
            values = self._internal.read(tensor.offset, tensor.size).view("int8").reshape(tensor.shape)
            request = OutputWrite(
                index=index,
                data=store(values, binding.form, tensor, self._state.hooks.padding_byte),
                size=binding.part.size,
                memo=context.memo,
                core_mask=context.core_mask,
                zero_copy=binding.memory is not None,
                internal=self._internal.read(0, model.internal_size),
                run_number=context.runs,
            )
            for offset, data in self._state.hooks.output_writes(request):
                binding.part.write(offset, data)
        if self._zero_copy:
            weights = self._weights.read(0, model.weight_size)
            for offset, data in self._state.hooks.weight_writes(weights, context.runs):
                self._weights.write(offset, data)


def _outputs(state: State, context: Context) -> list[Binding | None]:
    """The bound outputs, or memory of the runtime's own where the inputs came by rknn_inputs_set."""
    copying = all(binding is not None and binding.memory is None for binding in context.inputs)
    if copying and not any(context.outputs):
        for index, port in enumerate(context.model.outputs):
            form = state.layouts.native_output(context.model.tensors[port.tensor].shape)
            storage = state.private_storage(form.size_with_stride)
            state.hold(context, storage)
            context.outputs[index] = Binding(Part(storage, 0, form.size_with_stride), form, None)
    return context.outputs


def _bound(state: State, bindings: list[Binding | None], code: ErrorCode, side: str) -> list[Binding]:
    """All bindings, or Rejected where one is missing or its memory was destroyed."""
    found = []
    for index, binding in enumerate(bindings):
        if binding is None:
            raise Rejected(code, f"{side} {index} is not set")
        if binding.memory is not None and not binding.memory.alive:
            if not state.hooks.serves_destroyed_memories:
                raise Rejected(code, f"the memory of {side} {index} was destroyed")
            binding = replace(binding, part=_somebody_elses(state, binding.part.size), memory=None)
        found.append(binding)
    return found


def _somebody_elses(state: State, size: int) -> Part:
    """What lies where a destroyed memory was."""
    return Part(state.private_storage(size), 0, size)


def _given(state: State, context: Context, part: Part | None, what: str) -> Part:
    """The weight or internal memory, or Rejected where the application did not give it or destroyed it."""
    memory = context.outside.get(what)
    if memory is not None and not memory.alive:
        if not state.hooks.serves_destroyed_memories:
            raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"the {what} memory was destroyed")
        return _somebody_elses(state, memory.part.size)
    if part is None:
        raise Rejected(
            ErrorCode.RKNN_ERR_FAIL, f"the {what} memory that was promised from outside is not set"
        )
    return part

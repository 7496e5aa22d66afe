"""rknn_init, rknn_dup_context, rknn_destroy, core masks, and weight and internal memory from outside."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import numpy as np

from pytest_rknpu.agent.abi import ErrorCode, InitFlag
from pytest_rknpu.emulator import log
from pytest_rknpu.emulator.container import PackedModel, decode
from pytest_rknpu.emulator.engine import engine_for
from pytest_rknpu.emulator.platform import release_of
from pytest_rknpu.emulator.state import Context, Part, Rejected, State
from pytest_rknpu.errors import ModelError

_OUTSIDE_INTERNAL = InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE | InitFlag.RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE


def init(state: State, out: int, model: int, size: int, flags: int, extend: int) -> None:
    """rknn_init: ``model`` points to ``size`` bytes, or to a path where ``size`` is 0."""
    started_ns = time.perf_counter_ns()
    if not out:
        raise Rejected(ErrorCode.RKNN_ERR_CTX_INVALID, "the context pointer is NULL")
    handle = state.structures.context.from_address(out)
    handle.value = 0
    if not model:
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, "the model is NULL")
    extension = state.structures["rknn_init_extend"].from_address(extend) if extend else None
    packed = _checked(state, _model_bytes(model, size, flags, extension))
    context = _new_context(state, packed, flags)
    _provide_weights(state, context, extension.ctx if extension else 0)
    if not flags & (_OUTSIDE_INTERNAL | InitFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY):
        _own_internal(state, context)
    state.contexts[context.handle] = context
    handle.value = context.handle
    if state.platform.pace is not None:
        state.platform.pace.end_of_init(started_ns)


def _model_bytes(model: int, size: int, flags: int, extension: ctypes.Structure | None) -> bytes:
    if size == 0:
        path = Path(ctypes.string_at(model).decode(errors="surrogateescape"))
        try:
            return path.read_bytes()
        except OSError as error:
            raise Rejected(ErrorCode.RKNN_ERR_FAIL, f"model file {path}: {error.strerror}") from error
    if flags & InitFlag.RKNN_FLAG_MODEL_BUFFER_ZERO_COPY and extension is not None:
        offset, length = extension.real_model_offset, extension.real_model_size or size
        if offset < 0 or offset + length > size:
            raise Rejected(
                ErrorCode.RKNN_ERR_PARAM_INVALID, f"the model at {offset}+{length} exceeds {size} bytes"
            )
        return ctypes.string_at(model + offset, length)
    return ctypes.string_at(model, size)


def _checked(state: State, data: bytes) -> PackedModel:
    """The model, if this board may load it."""
    hooks, platform = state.hooks, state.platform
    try:
        model = decode(data, tolerate_truncation=hooks.loads_truncated_models)
    except ModelError as error:
        raise Rejected(ErrorCode.RKNN_ERR_MODEL_INVALID, f"invalid model: {error}") from error
    own = platform.soc.toolkit_platform
    if model.target_platform != own and not hooks.loads_foreign_models:
        text = f"the model is for {model.target_platform}, this is {own}"
        raise Rejected(ErrorCode.RKNN_ERR_TARGET_PLATFORM_UNMATCH, text)
    newest = model.needs_runtime
    if newest is not None and release_of(newest)[:2] > release_of(platform.runtime_version)[:2]:
        text = f"the model was compiled by {newest}, newer than this runtime {platform.runtime_version}"
        raise Rejected(ErrorCode.RKNN_ERR_MODEL_INVALID, text)
    return model


def _new_context(state: State, model: PackedModel, flags: int) -> Context:
    return Context(
        handle=state.new_handle(),
        model=model,
        engine=engine_for(model),
        flags=flags,
        inputs=[None] * len(model.inputs),
        outputs=[None] * len(model.outputs),
    )


def _provide_weights(state: State, context: Context, master: int) -> None:
    """Weights of the runtime's own, or another context's, or none yet (RKNN_FLAG_MEM_ALLOC_OUTSIDE)."""
    if context.has(InitFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY):
        return
    if context.has(InitFlag.RKNN_FLAG_SHARE_WEIGHT_MEM):
        source = state.context(master)
        if source.weights is None or source.model.weight_size != context.model.weight_size:
            text = "the context in extend.ctx has no weights that fit this model"
            raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
        _adopt_weights(state, context, source)
        return
    if context.model.weights is None:
        text = (
            "the model has no weights of its own; RKNN_FLAG_SHARE_WEIGHT_MEM and extend.ctx give it another's"
        )
        raise Rejected(ErrorCode.RKNN_ERR_MODEL_INVALID, text)
    if not context.has(InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE):
        part = _own_part(state, context, context.model.weight_size)
        part.write(0, _weight_bytes(context.model))
        context.weights = part


def _adopt_weights(state: State, context: Context, source: Context) -> None:
    """Use the weights of ``source``, whoever gave them."""
    if source.weights is None:
        return
    state.hold(context, source.weights.storage)
    context.weights = source.weights
    if "weight" in source.outside:
        context.outside["weight"] = source.outside["weight"]


def _own_internal(state: State, context: Context) -> None:
    context.internal = _own_part(state, context, context.model.internal_size)


def _own_part(state: State, context: Context, size: int) -> Part:
    storage = state.private_storage(size)
    state.hold(context, storage)
    return Part(storage, 0, size)


def _weight_bytes(model: PackedModel) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    offset, size = model.weights or (0, 0)
    stored = np.frombuffer(model.blob, np.uint8)[offset : offset + size]
    # Shorter only where a truncated model was accepted.
    return np.concatenate([stored, np.zeros(size - len(stored), np.uint8)])


def dup_context(state: State, source: int, out: int) -> None:
    """rknn_dup_context: a context of the same model with the same weights and activations of its own."""
    if not source or not out:
        raise Rejected(ErrorCode.RKNN_ERR_CTX_INVALID, "a context pointer is NULL")
    parent = state.context(state.structures.context.from_address(source).value)
    context = _new_context(state, parent.model, parent.flags)
    _adopt_weights(state, context, parent)
    if state.hooks.duplicates_move_weights and parent.weights is not None:
        context.weights = _own_part(state, context, parent.weights.size)
        context.weights.write(0, parent.weights.read(0, parent.weights.size))
        parent.weights.write(0, np.zeros(parent.weights.size, np.uint8))
    if state.hooks.duplicates_share_internal and parent.internal is not None:
        state.hold(context, parent.internal.storage)
        context.internal = parent.internal
    elif not context.flags & _OUTSIDE_INTERNAL:
        _own_internal(state, context)
    context.core_mask = parent.core_mask
    state.contexts[context.handle] = context
    state.structures.context.from_address(out).value = context.handle


def destroy(state: State, handle: int) -> None:
    """rknn_destroy; waits for a run of the context in another thread."""
    with state.lock:
        context = state.context(handle)
    with context.lock, state.lock:
        state.context(handle)  # another thread may have been first
        if state.hooks.serves_destroyed_contexts:
            return
        del state.contexts[handle]
        for storage in context.held:
            state.let_go(storage)


def set_core_mask(state: State, handle: int, mask: int) -> None:
    """rknn_set_core_mask; refused on SoCs with one core and for cores that the SoC has not."""
    context = state.context(handle)
    if mask in state.platform.core_masks:
        context.core_mask = mask
    elif state.hooks.unknown_core_mask == "refused":
        text = f"{state.platform.soc.name} does not support core mask {mask:#x}"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
    elif state.hooks.unknown_core_mask == "named":
        log.warning(f"core mask {mask} is not supported, falls back to a single core")


def set_weight_mem(state: State, handle: int, address: int) -> None:
    """rknn_set_weight_mem: the runtime fills the memory with the weights, on the CPU.

    It does not sync it (seen with 1.5.2 and 1.6.0): that is the application's (MEM-14).
    """
    context = state.context(handle)
    memory = state.memory_for(handle, address)
    part = memory.part
    if not context.has(InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE):
        raise Rejected(
            ErrorCode.RKNN_ERR_PARAM_INVALID, "the context was not made with RKNN_FLAG_MEM_ALLOC_OUTSIDE"
        )
    _require_size(part, context.model.weight_size, "weight")
    if context.model.weights is not None and state.hooks.fills_given_weights:
        weights = _weight_bytes(context.model)
        part.storage.cpu[part.offset : part.offset + len(weights)] = weights
    state.hold(context, part.storage)
    context.weights, context.outside["weight"] = part, memory


def set_internal_mem(state: State, handle: int, address: int) -> None:
    """rknn_set_internal_mem: where the context keeps its activations."""
    context = state.context(handle)
    memory = state.memory_for(handle, address)
    part = memory.part
    if not context.flags & _OUTSIDE_INTERNAL:
        text = "the context was made without RKNN_FLAG_MEM_ALLOC_OUTSIDE and RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
    if not state.hooks.internal_fits(part.size, context.model.internal_size):
        _require_size(part, context.model.internal_size, "internal")
    state.hold(context, part.storage)
    context.internal, context.outside["internal"] = part, memory


def _require_size(part: Part, needed: int, what: str) -> None:
    if part.size < needed:
        text = f"the {what} memory has {part.size} bytes, the model needs {needed}"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)


def unsupported(state: State, *_: object) -> None:
    """A call that is exported but documented as unsupported on this SoC, or everywhere."""
    raise Rejected(ErrorCode.RKNN_ERR_FAIL, f"not supported on {state.platform.soc.name}")

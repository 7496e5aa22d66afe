"""Runs the layers of a packed model with onnxruntime, which is imported at the first run only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_rknpu.emulator.container import Layer, PackedModel

if TYPE_CHECKING:
    import onnxruntime

Int8 = npt.NDArray[np.int8]
Bytes = npt.NDArray[np.uint8]

_KEPT_ENGINES = 64


class Engine:
    """The sessions of one packed model; one per process and model, used by all its contexts.

    Sessions are single-threaded and do not rewrite the graph, so that the same bytes in give the same
    bytes out.
    """

    def __init__(self, model: PackedModel) -> None:
        self._model = model
        self._sessions: list[onnxruntime.InferenceSession | None] = [None] * len(model.layers)

    def run(self, number: int, activations: Mapping[str, Int8], weights: Bytes) -> Int8:
        """Run layer ``number`` on ``activations`` (by input name) and the weight memory; returns what it
        stores.
        """
        layer = self._model.layers[number]
        session = self._sessions[number] or self._create(number)
        feeds: dict[str, npt.NDArray[Any]] = dict(activations)
        for weight in layer.weights:
            stored = weights[weight.offset : weight.offset + weight.size]
            feeds[weight.name] = stored.view(weight.dtype).reshape(weight.shape)
        result: Int8 = session.run(None, feeds)[0]
        return result

    def _create(self, number: int) -> onnxruntime.InferenceSession:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            self._graph(self._model.layers[number]), options, providers=["CPUExecutionProvider"]
        )
        self._sessions[number] = session
        return session

    def _graph(self, layer: Layer) -> bytes:
        offset, size = layer.graph
        return self._model.blob[offset : offset + size]


_engines: OrderedDict[str, Engine] = OrderedDict()
_engines_lock = threading.Lock()


def engine_for(model: PackedModel) -> Engine:
    """The engine of this model in this process; the least recently used beyond 64 models are dropped."""
    with _engines_lock:
        engine = _engines.pop(model.digest, None) or Engine(model)
        _engines[model.digest] = engine
        if len(_engines) > _KEPT_ENGINES:
            _engines.popitem(last=False)
        return engine

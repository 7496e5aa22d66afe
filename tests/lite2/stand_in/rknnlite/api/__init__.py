"""A stand-in for RKNN-Toolkit-Lite2 2.5.0: its call signatures and habits, over the emulated runtime.

Habits of the real package, seen with a runtime that writes down its calls: outputs are asked for with
want_float 1; "nchw" is transposed by the package, which always hands over NHWC; a second init_runtime
destroys the context of the first.

It lies in the root of an emulated board. What the board is, and what is to be wrong with the package, a test
leaves in ``stand_in.json`` beside the package: ``options`` of the emulator, ``fault``, ``log``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from pytest_rknpu.agent.abi import POINTER, PROTOTYPES, TensorFormat, TensorType, concrete
from pytest_rknpu.agent.structures import layouts
from pytest_rknpu.emulator import open_library

_TYPES = {
    "int8": TensorType.RKNN_TENSOR_INT8,
    "uint8": TensorType.RKNN_TENSOR_UINT8,
    "float16": TensorType.RKNN_TENSOR_FLOAT16,
    "float32": TensorType.RKNN_TENSOR_FLOAT32,
}


class RKNNLite:
    """As the wheel's: nothing is raised, a failure is -1 or None and a line in the log."""

    NPU_CORE_AUTO = 0
    NPU_CORE_0 = 1

    def __init__(self, verbose: bool = False, verbose_file: str | None = None) -> None:
        self._told = json.loads((Path(__file__).parents[2] / "stand_in.json").read_text())
        self._fault = self._told["fault"]
        self._model: bytes | None = None
        self._context: ctypes.c_uint64 | None = None
        print("W rknn-toolkit-lite2 version: 2.5.0")

    def load_rknn(self, path: str, key_path: str | None = None) -> int:
        if self._fault == "load":
            print("E Invalid RKNN model path")
            return -1
        self._model = Path(path).read_bytes()
        return 0

    def init_runtime(
        self,
        target: str | None = None,
        device_id: str | None = None,
        async_mode: bool = False,
        core_mask: int = NPU_CORE_AUTO,
    ) -> int:
        if self._model is None or self._fault == "init":
            print("E RKNN: [00:00:00.000] Invalid RKNN model version 6")
            print("E Catch exception when init runtime!")
            return -1
        if self._fault == "crash":
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGSEGV)
        self._wrong = self._fault == "wrong-byte" or (self._fault == "wrong-cores" and core_mask == 3)
        self.release()
        self._structures = layouts(64, 64)
        self._library = open_library(self._told["options"])
        self._context = ctypes.c_uint64()
        buffer = ctypes.create_string_buffer(self._model, len(self._model))
        self._kept = buffer
        context = ctypes.addressof(self._context)
        code = self._call("rknn_init", context, ctypes.addressof(buffer), len(self._model), 0, 0)
        return code or (self._call("rknn_set_core_mask", self._handle, core_mask) if core_mask else 0)

    def inference(
        self,
        inputs: list[Any],
        data_type: str | None = None,
        data_format: str | None = None,
        inputs_pass_through: list[int] | None = None,
        get_frame_id: bool = False,
        reuse_outputs: bool = False,
    ) -> list[Any] | None:
        if self._fault == "hang":
            time.sleep(1000)
        if self._fault == "raise":
            raise AttributeError("'NoneType' object has no attribute 'format'")
        if self._fault == "refuse-nchw" and data_format == "nchw":
            print("E Catch exception when setting inputs.")
            return None
        if data_format == "nchw" and self._fault != "nchw-not-transposed":
            print("W The input[0] need NHWC data format, but NCHW set, the data format ... changed to NHWC.")
            inputs = [array.transpose(0, 2, 3, 1) if array.ndim == 4 else array for array in inputs]
        codes = (self._set_inputs(inputs, inputs_pass_through), self._run())
        if any(codes):
            return None
        outputs = self._outputs(want_float=self._fault != "as-it-is")
        if self._wrong:
            outputs[0].reshape(-1)[-1] += 1
        return outputs + outputs if self._fault == "one-too-many" else outputs

    def get_sdk_version(self) -> str | None:
        return self._told["sdk_version"]

    def release(self) -> None:
        if self._context is not None:
            self._call("rknn_destroy", self._handle)
            self._context = None

    @property
    def _handle(self) -> int:
        assert self._context is not None
        return self._context.value

    def _call(self, name: str, *arguments: Any) -> int:
        prototype = PROTOTYPES[name]
        kinds = [concrete(kind, self._structures) for kind in (prototype.result, *prototype.arguments)]
        assert prototype.result != POINTER
        address = self._library.symbol(name)
        if address is None:
            return -1
        answer: int = ctypes.CFUNCTYPE(*kinds)(address)(*arguments)
        return answer

    def _set_inputs(self, inputs: list[Any], pass_through: list[int] | None) -> int:
        kept = [np.ascontiguousarray(array) for array in inputs]
        records = (self._structures["rknn_input"] * len(kept))()
        for index, array in enumerate(kept):
            record = records[index]
            record.index, record.size, record.buf = index, array.nbytes, array.ctypes.data
            record.pass_through = bool(pass_through and pass_through[index])
            record.type = int(_TYPES[array.dtype.name])
            record.fmt = int(TensorFormat.RKNN_TENSOR_NHWC)
        return self._call("rknn_inputs_set", self._handle, len(kept), ctypes.addressof(records))

    def _run(self) -> int:
        return self._call("rknn_run", self._handle, 0)

    def _outputs(self, *, want_float: bool) -> list[Any]:
        counts = self._structures["rknn_input_output_num"]()
        self._call("rknn_query", self._handle, 0, ctypes.addressof(counts), ctypes.sizeof(counts))
        records = (self._structures["rknn_output"] * counts.n_output)()
        for index, record in enumerate(records):
            record.index, record.want_float = index, want_float
        address = ctypes.addressof(records)
        self._call("rknn_outputs_get", self._handle, len(records), address, 0)
        dtype = np.float32 if want_float else np.int8
        found = [np.frombuffer(ctypes.string_at(r.buf, r.size), dtype).copy() for r in records]
        self._call("rknn_outputs_release", self._handle, len(records), address)
        return found

"""A stand-in for RKNN-Toolkit2 with a board behind it, in whatever mood ``$FAKE_BOARD`` (JSON) asks for.

It is found as an installed distribution (9.9.9) and driven by the real workers in real child processes. A
"built" file carries its ONNX graph; inference on the board normalises as ``config`` said and runs it by ONNX
Runtime.

Moods: ``adb`` (devices), ``load`` ("ok", "refuse"), ``init`` ("ok", "refuse", "hang"), ``inference`` ("ok",
"none", "hang", "pipe", "doubled"), ``perf``, ``perf_layers``, ``memory``, ``sdk`` (what the calls return),
``printed`` (what eval_perf prints instead).
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import threading
from pathlib import Path

import numpy as np

MOOD = json.loads(os.environ["FAKE_BOARD"])
LOG = Path(os.environ["FAKE_BUILD_LOG"])


def rknn_file(platform, model):
    text = json.dumps({"target_platform": [platform], "version": "9.9.9", "model": model}).encode()
    head = b"RKNN".ljust(8, b"\0") + struct.pack("<QQ", 6, 16)
    return head.ljust(64, b"\0") + bytes(16) + struct.pack("<Q", len(text)) + text


class RKNN:
    def __init__(self, verbose=False):
        self.runtime = None

    def config(self, target_platform, mean_values=None, std_values=None, **_):
        self.platform = target_platform
        self.model = {"mean": mean_values, "std": std_values}
        return 0

    def load_onnx(self, model, inputs=None, input_size_list=None, outputs=None):
        self.model["onnx"] = base64.b64encode(Path(model).read_bytes()).decode()
        return 0

    def build(self, do_quantization, dataset=None):
        sys.stdout.write(LOG.read_text())
        return 0

    def export_rknn(self, path):
        Path(path).write_bytes(rknn_file(self.platform, self.model))
        return 0

    def list_devices(self):
        if MOOD.get("list") == "hang":
            threading.Event().wait(60)
        return MOOD["adb"], []

    def load_rknn(self, path):
        if MOOD.get("load") == "refuse":
            print("E load_rknn: Invalid RKNN format!")
            return -1
        content = Path(path).read_bytes()
        description = json.loads(content[88:])
        self.platform, self.model = description["target_platform"][0], description["model"]
        return 0

    def init_runtime(self, target=None, device_id=None, perf_debug=False, eval_mem=False):
        self.runtime = {"target": target, "perf_debug": perf_debug, "eval_mem": eval_mem}
        mood = MOOD.get("init", "ok") if target else "ok"
        if mood == "hang":
            threading.Event().wait(60)
        if mood == "refuse":
            print("E init_runtime: Connect to Device Failure (-1), Please make sure ...")
            return -1
        if target is not None and target != self.platform:
            raise ValueError("the target is not the platform of the model")
        return 0

    def inference(self, inputs, data_format=None):
        import onnxruntime

        mood = MOOD.get("inference", "ok")
        if mood == "hang":
            threading.Event().wait(60)
        if mood == "none":
            return None
        if mood == "pipe":
            print("E RKNNAPI: rknn_outputs_get, recv MsgGetOutputAck fail, -9(ERROR_PIPE) != 1244!")
            raise ValueError(
                "Traceback (most recent call last):\n  File 'x'\nException: get outputs failed: -9"
            )
        session = onnxruntime.InferenceSession(base64.b64decode(self.model["onnx"]))
        feed = {}
        for entry, array in zip(session.get_inputs(), inputs, strict=True):
            if self.model["mean"]:
                shape = (1, -1, 1, 1) if data_format[0] == "nchw" else (1, 1, 1, -1)
                mean, std = (np.reshape(self.model[key][0], shape) for key in ("mean", "std"))
                array = (array - mean) / std
            feed[entry.name] = array.astype(np.float32)
        outputs = session.run(None, feed)
        return [output * 2 for output in outputs] if mood == "doubled" else outputs

    def eval_perf(self, is_print=True, fix_freq=True):
        if "printed" in MOOD:
            print(MOOD["printed"])
            return None
        return MOOD["perf_layers" if self.runtime["perf_debug"] else "perf"]

    def eval_memory(self, is_print=True):
        if not self.runtime["eval_mem"]:
            raise ValueError("When init runtime, parameter <eval_mem> should be set to True")
        return MOOD["memory"]

    def get_sdk_version(self):
        return MOOD["sdk"]

    def accuracy_analysis(self, inputs, output_dir, target=None, device_id=None):
        folder = Path(output_dir)
        folder.mkdir()
        columns = "simulator_error runtime_error" if target else "simulator_error"
        rows = "0.99 | 0.1 0.98 | 0.2 0.97 | 0.3 0.96 | 0.4" if target else "0.99 | 0.1 0.98 | 0.2"
        (folder / "error_analysis.txt").write_text(
            f"layer_name {columns}\n----\n[Conv] first {rows}\n[Relu] fused\n"
        )
        return 0

    def release(self):
        pass

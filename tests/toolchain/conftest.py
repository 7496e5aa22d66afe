"""A stand-in for RKNN-Toolkit2 on the import path: the driver is tested without it, and in its worst moods.

It is found as an installed distribution (9.9.9) and driven by the real worker in a real child process.
The target platform chooses what it does; a file counts the builds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jobs import Jobs

FAKE = """
import json, os, resource, struct, sys, threading
from pathlib import Path

def rknn_file(platform):
    text = json.dumps({"target_platform": [platform], "version": "9.9.9"}).encode()
    head = b"RKNN".ljust(8, b"\\0") + struct.pack("<QQ", 6, 16)
    return head.ljust(64, b"\\0") + bytes(16) + struct.pack("<Q", len(text)) + text

class RKNN:
    def __init__(self, verbose):
        assert verbose
        print("I rknn-toolkit2 version: 9.9.9")

    def config(self, target_platform, **keywords):
        self.platform, self.keywords = target_platform, keywords
        if target_platform == "raises":
            print("\\x1b[1;31mE\\x1b[0m \\x1b[1;31mconfig: Traceback (most recent call last):\\n"
                  "  File 'x', line 1\\nValueError: no such thing!\\n\\x1b[0m")
            print("\\x1b[1;31mE\\x1b[0m \\x1b[1;31mrknn-toolkit2 version: 9.9.9\\x1b[0m")
            raise ValueError("Traceback (most recent call last):\\n  File 'x'\\nValueError: no such thing!")
        return 0

    def load_onnx(self, model):
        assert Path(model).exists()
        return 0

    def build(self, do_quantization, dataset=None):
        with open(os.environ["FAKE_BUILDS"], "a") as counter:
            counter.write(self.platform + "\\n")
        if dataset:
            self.samples = Path(dataset).read_text().split()
            assert all(Path(name).exists() for name in self.samples)
        if self.platform == "aborts":
            os.write(1, b"E RKNN: [10:00:00.000] Meet unsupported conv\\n")
            os.abort()
        if self.platform == "leaves":
            os.write(2, b"E RKNN: [10:00:00.000] cannot go on\\n")
            os._exit(1)
        if self.platform == "exits":
            sys.exit(3)
        if self.platform == "refuses":
            print("\\x1b[1;31mE\\x1b[0m \\x1b[1;31mbuild: Current target_platform not support this!\\x1b[0m")
            return -1
        if self.platform == "chatters":
            for _ in range(40):
                os.write(1, b"D RKNN: as is so often the case\\n" * (1 << 15))
            os.write(1, b"E RKNN: [10:00:00.000] no more to say\\n")
            return -1
        if self.platform == "chatters-well":
            for _ in range(4):
                print("D RKNN: as is so often the case\\n" * (1 << 15), flush=True)
        if self.platform == "limited":
            print("E limits:", *resource.getrlimit(resource.RLIMIT_FSIZE))
            return -1
        if self.platform == "hangs":
            threading.Event().wait(60)
        if self.platform == "slow":
            threading.Event().wait(1.5)
        Path("check0_base_optimize.onnx").write_bytes(b"as loaded")
        Path("check3_fuse_ops.onnx").write_bytes(b"fused")
        print("E RKNN: [10:00:00.000] Unkown op target: 0")
        return 0

    def export_rknn(self, path):
        platform = "other" if self.platform == "mistaken" else self.platform
        Path(path).write_bytes(b"garbage" if self.platform == "writes-garbage" else rknn_file(platform))
        return 0

    def init_runtime(self):
        return 0

    def inference(self, inputs, data_format=None):
        if self.platform == "infers-none":
            return None
        return [inputs[0] * 2, inputs[0].sum(axis=(1, 2, 3))]
"""


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the stand-in and an empty cache; returns the file that gets one line per build."""
    site, builds = tmp_path / "site", tmp_path / "builds"
    (site / "rknn").mkdir(parents=True)
    (site / "rknn" / "__init__.py").write_text("")
    (site / "rknn" / "api.py").write_text(FAKE)
    (site / "pkg_resources.py").write_text("")
    (site / "rknn_toolkit2-9.9.9.dist-info").mkdir()
    (site / "rknn_toolkit2-9.9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rknn-toolkit2\nVersion: 9.9.9\n"
    )
    builds.write_text("")
    monkeypatch.syspath_prepend(str(site))
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *([inherited] if inherited else [])]))
    monkeypatch.setenv("FAKE_BUILDS", str(builds))
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path / "cache"))
    return builds


@pytest.fixture
def jobs(toolkit: Path, tmp_path: Path) -> Jobs:
    """With a toolkit that imports numpy, as the real one does."""
    api = tmp_path / "site" / "rknn" / "api.py"
    api.write_text(f"import numpy\n{api.read_text()}")
    return Jobs(tmp_path)

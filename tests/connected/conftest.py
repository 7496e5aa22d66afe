"""A host with a stand-in for RKNN-Toolkit2 and a connected board in any mood: see stand_in.py."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.session.artifacts import compiled

HERE = Path(__file__).parent
BUILD_LOG = HERE.parent / "toolchain" / "logs" / "dense-int8-rk3588-2.5.0.log"
WEIGHTS, INTERNAL = 65664, 159744  # that log's totals in bytes
SDK = """
==============================================
RKNN VERSION:
    API: 2.3.2 (1842325 build@2025-03-30T09:54:34)
    DRV: rknn_server: 2.3.2 (1842325 build@2025-03-30T09:54:34)
    DRV: rknnrt: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)
==============================================
"""
LAYERS = "\n".join(
    [
        "ID OpType DataType Target InputShape OutputShape Cycles(DDR/NPU/Total) Time(us) RW(KB) FullName",
        "1 InputOperator INT8 CPU \\ (1,3,8,8) 0/0/0 5 \\ InputOperator:a",
        "2 ConvRelu INT8 NPU (1,3,8,8),(4,3,3,3) (1,4,8,8) 10/20/20 30 1.00 Conv:c",
        "3 OutputOperator INT8 CPU (1,4,8,8) \\ 0/0/0 4 \\ OutputOperator:y",
        "Total Operator Elapsed Per Frame Time(us): 39",
    ]
)
GOOD: dict[str, Any] = {
    "adb": ["0123456789ABCDEF"],
    "sdk": SDK,
    "perf": "Total Time(us): 7140\nFPS: 140.06\n",
    "perf_layers": LAYERS,
    "memory": {
        "weight_memory": WEIGHTS,
        "internal_memory": INTERNAL,
        "other_memory": 4096,
        "total_memory": WEIGHTS + INTERNAL + 4096,
    },
}

SetMood = Callable[..., None]


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> None:
    """What another toolkit compiled in this process is of no use to this one."""
    compiled.cache_clear()


def install_stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SetMood:
    """Put the stand-in on the import path, for this process and its children, with an empty cache."""
    site = folder / "site"
    (site / "rknn").mkdir(parents=True)
    (site / "rknn" / "__init__.py").write_text("")
    shutil.copy(HERE / "stand_in.py", site / "rknn" / "api.py")
    (site / "pkg_resources.py").write_text("")
    information = site / "rknn_toolkit2-9.9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: rknn-toolkit2\nVersion: 9.9.9\n")
    monkeypatch.syspath_prepend(str(site))
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *([inherited] if inherited else [])]))
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("FAKE_BUILD_LOG", str(BUILD_LOG))

    def change(**changes: Any) -> None:
        monkeypatch.setenv("FAKE_BOARD", json.dumps({**GOOD, **changes}))

    change()
    return change


@pytest.fixture
def mood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetMood:
    """``mood(init="refuse")``: the board is well, but for that."""
    return install_stand_in(tmp_path, monkeypatch)

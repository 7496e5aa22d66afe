"""The cache: by content, whole or absent, mended where damaged, and one build for any number of askers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain import Compiled, CompileOptions, compile_model, simulate
from pytest_rknpu.toolchain.cache import fetch
from pytest_rknpu.toolchain.options import content_key

MODEL = models.load("probe_pointwise")
OPTIONS = CompileOptions("rk3588", MODEL.calibration)

CALL = """
from pytest_rknpu import models
from pytest_rknpu.toolchain import CompileOptions, compile_model
model = models.load("probe_pointwise")
print(compile_model(model.float_onnx, CompileOptions("slow", model.calibration)).cached)
"""


def compiled() -> Compiled:
    return compile_model(MODEL.float_onnx, OPTIONS)


def test_the_same_content_is_compiled_once(toolkit: Path) -> None:
    first, second = compiled(), compiled()
    assert (first.cached, second.cached) == (False, True)
    assert replace(first, cached=True) == second
    assert toolkit.read_text().count("rk3588") == 1


def test_a_simulation_of_a_new_model_leaves_its_build_behind(toolkit: Path) -> None:
    samples = [MODEL.calibration[:1]]
    first = simulate(MODEL.float_onnx, OPTIONS, samples)
    assert compiled().cached
    assert toolkit.read_text().count("rk3588") == 1
    again = simulate(MODEL.float_onnx, OPTIONS, samples)  # the simulator runs only what it has just built
    assert toolkit.read_text().count("rk3588") == 2
    np.testing.assert_array_equal(first[0], again[0])


@pytest.mark.parametrize(
    "damage",
    [
        "flipped byte",
        "truncated",
        "file missing",
        "index missing",
        "index empty",
        "index no JSON",
        "index a list",
    ],
)
def test_a_damaged_entry_is_built_again(toolkit: Path, damage: str) -> None:
    path = compiled().path
    content, index = path.read_bytes(), path.parent / "entry.json"
    match damage:
        case "flipped byte":
            path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        case "truncated":
            path.write_bytes(content[:-1])
        case "file missing":
            path.unlink()
        case "index missing":
            index.unlink()
        case "index empty":
            index.write_text("{}")
        case "index no JSON":
            index.write_text('{"model.rknn": ')
        case "index a list":
            index.write_text('["model.rknn"]')
    again = compiled()
    assert not again.cached
    assert again.path.read_bytes() == content
    assert compiled().cached
    assert toolkit.read_text().count("rk3588") == 2


def test_what_a_killed_process_left_is_cleared(toolkit: Path, tmp_path: Path) -> None:
    key = content_key(MODEL.float_onnx, OPTIONS, "9.9.9")
    left = tmp_path / "cache" / "toolkit" / "unfinished" / key / "entry"
    left.mkdir(parents=True)
    (left / "model.rknn").write_bytes(b"half")
    assert not compiled().cached
    assert not left.parent.exists()


def test_what_was_left_for_other_content_goes_after_a_week(toolkit: Path, tmp_path: Path) -> None:
    """It may never be asked for again. Younger: somebody may be at work there."""
    unfinished = tmp_path / "cache" / "toolkit" / "unfinished"
    for name, days in (("old", 8), ("young", 6)):
        (unfinished / name / "work").mkdir(parents=True)
        then = time.time() - days * 24 * 3600
        os.utime(unfinished / name, (then, then))
    compiled()
    assert [path.name for path in unfinished.iterdir()] == ["young"]


def test_two_processes_compile_one_model_once(toolkit: Path) -> None:
    askers = [
        subprocess.Popen([sys.executable, "-c", CALL], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = sorted(asker.communicate(timeout=60)[0].strip() for asker in askers)
    assert answers == ["False", "True"]
    assert toolkit.read_text() == "slow\n"


def test_waiting_for_another_process_has_a_limit(tmp_path: Path) -> None:
    def make(folder: Path) -> dict[str, Path]:
        with pytest.raises(ToolkitError, match=r"another process has been compiling the same model for 0 s"):
            fetch("key", make, 0.1, tmp_path)
        (folder / "a").write_text("1")
        return {"b": folder / "a"}

    entry, cached = fetch("key", make, 5, tmp_path)
    assert not cached
    assert (entry / "b").read_text() == "1"


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def make(folder: Path) -> dict[str, Path]:
        (folder / "half").write_text("")
        raise ToolkitError("no")

    for _ in range(2):
        with pytest.raises(ToolkitError, match="no"):
            fetch("key", make, 5, tmp_path)
    assert list((tmp_path / "toolkit" / "entries").iterdir()) == []
    assert list((tmp_path / "toolkit" / "unfinished").iterdir()) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(OPTIONS, target_platform="rk3576"),
        replace(OPTIONS, calibration=None),
        replace(OPTIONS, calibration=MODEL.calibration[:1]),
        replace(OPTIONS, calibration=np.nextafter(MODEL.calibration, np.float32(9))),
        replace(OPTIONS, calibration=MODEL.calibration.reshape(8, 16, 32, 8)),
        replace(OPTIONS, quantized_dtype="w8a16"),
        replace(OPTIONS, quantized_algorithm="mmse"),
        replace(OPTIONS, quantized_method="layer"),
        replace(OPTIONS, optimization_level=0),
        replace(OPTIONS, sparse_infer=True),
        replace(OPTIONS, mean_values=(0.0,)),
        replace(OPTIONS, std_values=(2.0,)),
        replace(OPTIONS, config={"single_core_mode": True}),
    ],
)
def test_each_option_is_part_of_the_key(other: CompileOptions) -> None:
    assert content_key(MODEL.float_onnx, other, "1") != content_key(MODEL.float_onnx, OPTIONS, "1")


def test_model_and_version_are_part_of_the_key() -> None:
    key = content_key(MODEL.float_onnx, OPTIONS, "1")
    assert key == content_key(MODEL.float_onnx, replace(OPTIONS, calibration=MODEL.calibration.copy()), "1")
    assert key != content_key(MODEL.qdq_onnx, OPTIONS, "1")
    assert key != content_key(MODEL.float_onnx, OPTIONS, "2")

"""Whatever becomes of the toolkit's process is one ToolkitError; the next request works."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConfigurationError, HarnessError, ModelError, ToolkitError
from pytest_rknpu.toolchain import CompileOptions, compile_model, read_header, simulate, simulate_inputs
from pytest_rknpu.toolchain.cache import cache_folder

pytestmark = pytest.mark.usefixtures("toolkit")
MODEL = models.load("probe_pointwise")


def test_a_build_that_works(toolkit: Path) -> None:
    options = CompileOptions("rk3588", MODEL.calibration)
    compiled = compile_model(MODEL.float_onnx, options)
    assert read_header(compiled.path.read_bytes()).target_platforms == ("rk3588",)
    assert compiled.toolkit_version == "9.9.9"
    assert not compiled.cached
    assert "Unkown op target" in compiled.log.read_text()
    assert compiled.fused_graph is not None
    assert compiled.fused_graph.read_bytes() == b"fused"
    assert toolkit.read_text() == "rk3588\n"


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("raises", r"failed in config \(ValueError: no such thing!\): E config: ValueError: no such thing!;"),
        ("refuses", r"failed in build \(returned -1\): E build: Current target_platform not support this!;"),
        ("aborts", r"died in build \(SIGABRT\): E RKNN: \[10:00:00.000\] Meet unsupported conv;"),
        ("leaves", r"ended in build with status 1 and no exception: E RKNN: .* cannot go on;"),
        ("exits", r"ended in build with status 3 and no exception: it printed no error;"),
    ],
)
def test_each_way_to_fail(platform: str, words: str) -> None:
    with pytest.raises(
        ToolkitError, match=rf"RKNN-Toolkit2 9\.9\.9, compiling for {platform}, {words}"
    ) as caught:
        compile_model(MODEL.float_onnx, CompileOptions(platform))
    log = re.search(r"its whole log: (\S+)$", str(caught.value))
    assert log is not None
    assert "rknn-toolkit2 version: 9.9.9" in Path(log[1]).read_text()
    # The cache holds nothing of it, and another request is not disturbed.
    assert compile_model(MODEL.float_onnx, CompileOptions("rk3588")).path.exists()
    with pytest.raises(ToolkitError, match=words):
        compile_model(MODEL.float_onnx, CompileOptions(platform))


def test_a_passed_deadline_ends_the_process() -> None:
    started = time.monotonic()
    with pytest.raises(ToolkitError, match=r"did not end within 3 s \(in step \w+\)"):
        compile_model(MODEL.float_onnx, CompileOptions("hangs"), deadline_s=3)
    assert time.monotonic() - started < 20


def test_an_endless_log_is_bounded_on_disk_and_in_memory(tmp_path: Path) -> None:
    with pytest.raises(
        ToolkitError, match=r"E RKNN: \[10:00:00.000\] no more to say; its whole log: "
    ) as caught:
        compile_model(MODEL.float_onnx, CompileOptions("chatters"))
    log = Path(str(caught.value).rpartition(": ")[2])
    assert log.stat().st_size < 18 << 20
    assert re.search(r"\n\.\.\. 2\d{7} bytes left out \.\.\.\n", log.read_text())
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    with pytest.raises(ToolkitError, match=f"E limits: {1 << 32} {hard};"):
        compile_model(MODEL.float_onnx, CompileOptions("limited"))


def test_a_log_that_cannot_be_kept_hides_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache" / "toolkit").mkdir(parents=True)
    (tmp_path / "cache" / "toolkit" / "failed").write_text("")
    with pytest.raises(
        ToolkitError, match=r"failed in config .* its whole log: not kept, as .*cannot be written"
    ):
        compile_model(MODEL.float_onnx, CompileOptions("raises"))


@pytest.mark.parametrize(
    ("platform", "words"),
    [("mistaken", "asked for mistaken but wrote a model for other"), ("writes-garbage", "no readable model")],
)
def test_what_was_written_is_checked(platform: str, words: str) -> None:
    with pytest.raises(ToolkitError, match=words):
        compile_model(MODEL.float_onnx, CompileOptions(platform))
    with pytest.raises(ToolkitError, match=words):
        compile_model(MODEL.float_onnx, CompileOptions(platform))


def test_broken_onnx_never_reaches_the_toolkit(toolkit: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="truncated"):
        compile_model(MODEL.float_onnx[:-40], CompileOptions("rk3588"))
    with pytest.raises(ModelError, match=r"cannot read the ONNX model .*missing\.onnx"):
        simulate(tmp_path / "missing.onnx", CompileOptions("rk3588"), [MODEL.calibration[:1]])
    assert toolkit.read_text() == ""


def test_simulation_stacks_samples_and_outputs(toolkit: Path) -> None:
    samples = [sample[None] for sample in MODEL.calibration[:3]]
    doubled, sums = simulate(MODEL.float_onnx, CompileOptions("rk3588", MODEL.calibration), samples)
    assert np.array_equal(doubled, MODEL.calibration[:3] * 2)
    assert np.allclose(sums, MODEL.calibration[:3].sum(axis=(1, 2, 3)))
    assert doubled.dtype == sums.dtype == np.float32
    assert toolkit.read_text() == "rk3588\n"


def test_simulation_is_never_answered_from_a_cache(toolkit: Path) -> None:
    for _ in range(2):
        simulate(MODEL.float_onnx, CompileOptions("rk3588"), [MODEL.calibration[:1]])
    assert toolkit.read_text() == "rk3588\nrk3588\n"


def test_simulation_that_yields_none() -> None:
    with pytest.raises(
        ToolkitError, match=r"simulating infers-none, failed in inference \(returned None for sample 0"
    ):
        simulate(MODEL.float_onnx, CompileOptions("infers-none"), [MODEL.calibration[:1]])


def test_simulation_of_nothing_or_of_a_mixture() -> None:
    with pytest.raises(HarnessError, match="at least one"):
        simulate(MODEL.float_onnx, CompileOptions("rk3588"), [])
    with pytest.raises(HarnessError, match="one shape"):
        simulate(MODEL.float_onnx, CompileOptions("rk3588"), [np.zeros((1, 3)), np.zeros((1, 4))])
    for inputs in ([], [np.zeros((0, 1, 3))], [np.zeros((2, 1, 3)), np.zeros((1, 1, 3))]):
        with pytest.raises(HarnessError, match="as many samples of each input, at least one"):
            simulate_inputs(MODEL.float_onnx, CompileOptions("rk3588"), inputs)


def test_a_host_that_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setenv("ANOTHER", "environment")  # so that no server is there yet
    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(ToolkitError, match=r"starts no further process .*temporarily unavailable.*ulimit -u"):
        compile_model(MODEL.float_onnx, CompileOptions("rk3588"))


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(MODEL.float_onnx, CompileOptions("rk3588"), [MODEL.calibration[:1]])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match=r"no folder for temporary files .*set TMPDIR"):
        simulate(MODEL.float_onnx, CompileOptions("rk3588"), [MODEL.calibration[:1]])


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("RKNPU_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "pytest-rknpu"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "pytest-rknpu"

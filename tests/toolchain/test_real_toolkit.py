"""RKNN-Toolkit2 itself: what this package relies on, shown with the version that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.measure import count_top1
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.toolchain import (
    CompileOptions,
    compile_model,
    process,
    read_header,
    simulate,
    toolkit_status,
)

STATUS = toolkit_status()
pytestmark = pytest.mark.skipif(
    STATUS.version is None, reason=f"{STATUS.reason}; install it with: {STATUS.install_command}"
)
DIGITS, POINTWISE = models.load("digits_cnn"), models.load("probe_pointwise")


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for this module, none of the user's."""
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "real-toolkit-cache"))


@pytest.mark.parametrize(("platform", "version"), [("rk3588", 6), ("rk3576", 6), ("rv1106", 0x1004)])
def test_compiles_for(platform: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = CompileOptions(platform, POINTWISE.calibration)
    first, second = (compile_model(POINTWISE.float_onnx, options) for _ in range(2))
    header = read_header(first.path.read_bytes())
    assert header.target_platforms == (platform,)
    assert header.format_version == version
    assert STATUS.version is not None
    assert header.toolkit_version.startswith(STATUS.version)
    assert (first.cached, second.cached) == (False, True)
    assert second.sha256 == first.sha256
    # What MEM-12 and LAT-09 will read, and the graph it refers to.
    log = first.log.read_text()
    assert "Total Internal Memory Size" in log
    assert "Network Layer Information Table" in log
    assert first.fused_graph is not None
    # The toolkit writes into its working directory, which is not ours.
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("platform", ["rk3588", "rk3576"])
def test_simulates_the_classifier(platform: str) -> None:
    labelled = models.load_labelled("digits_cnn")
    options = CompileOptions(platform, DIGITS.calibration)
    (scores,) = simulate(DIGITS.float_onnx, options, [sample[None] for sample in labelled.inputs])
    expected = count_top1(run_onnx(DIGITS.float_onnx, labelled.inputs)[0], labelled.labels)
    assert count_top1(scores, labelled.labels).share >= expected.share - 0.01


def test_simulation_repeats_itself_and_quantises() -> None:
    """Two processes give the same bytes, and those of a quantised model, not of the float one."""
    options = CompileOptions("rk3588", DIGITS.calibration)
    samples = [sample[None] for sample in DIGITS.calibration[:16]]
    first, second = (simulate(DIGITS.float_onnx, options, samples)[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert len(np.unique(first)) <= 256
    assert not np.array_equal(first, run_onnx(DIGITS.float_onnx, DIGITS.calibration[:16])[0])


def test_simulator_computes_the_exact_probe_exactly() -> None:
    options = CompileOptions("rk3576", POINTWISE.calibration)
    (output,) = simulate(POINTWISE.float_onnx, options, [sample[None] for sample in POINTWISE.calibration])
    assert np.array_equal(output, run_onnx(POINTWISE.qdq_onnx, POINTWISE.calibration)[0])


def test_mean_and_deviation_are_applied_once_by_the_toolkit() -> None:
    """The same pictures, normalised before or by the toolkit, give nearly the same scores."""
    plain = CompileOptions("rk3588", DIGITS.calibration)
    pictures = DIGITS.calibration * 64 + 128
    normalising = CompileOptions("rk3588", pictures, mean_values=(128.0,) * 3, std_values=(64.0,) * 3)
    before = simulate(DIGITS.float_onnx, plain, [s[None] for s in DIGITS.calibration[:8]])[0]
    inside = simulate(DIGITS.float_onnx, normalising, [s[None] for s in pictures[:8]])[0]
    assert np.abs(before - inside).max() < 0.3
    assert np.abs(before).max() > 2


def fresh(*_: object) -> None:
    """What run_forked says where no server is to be had."""


def differing(first: bytes, second: bytes) -> set[int]:
    assert len(first) == len(second)
    return {index for index, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]}


@pytest.mark.parametrize("platform", ["rk3588", "rk3576"])
def test_a_forked_simulation_gives_the_bytes_of_a_fresh_one(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, samples = CompileOptions(platform, DIGITS.calibration), [s[None] for s in DIGITS.calibration[:8]]
    statuses = recorded(monkeypatch)
    forked = simulate(DIGITS.float_onnx, options, samples)
    assert statuses == [0]
    monkeypatch.setattr(process, "run_forked", fresh)
    alone = simulate(DIGITS.float_onnx, options, samples)
    assert [output.tobytes() for output in forked] == [output.tobytes() for output in alone]


def test_a_forked_build_differs_from_fresh_ones_only_where_they_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No two builds have the same bytes: the toolkit writes out memory that it has not set, and addresses.

    glibc is told to set it, which leaves the addresses: words of eight bytes, of which a few agree by chance.
    """
    monkeypatch.setenv("MALLOC_PERTURB_", "85")

    def build(name: str) -> tuple[bytes, bytes]:
        monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path / name))
        compiled = compile_model(POINTWISE.float_onnx, CompileOptions("rk3588", POINTWISE.calibration))
        assert compiled.fused_graph is not None
        return compiled.path.read_bytes(), compiled.fused_graph.read_bytes()

    statuses = recorded(monkeypatch)
    forked, graph = build("forked")
    assert statuses == [0]
    monkeypatch.setattr(process, "run_forked", fresh)
    builds = [build(f"fresh{number}") for number in range(3)]
    assert {own for _, own in builds} == {graph}
    varying = set().union(*(differing(builds[0][0], model) for model, _ in builds[1:]))
    assert len(varying) < len(forked) / 20
    near = {index + by for index in varying for by in range(-8, 9)}
    assert differing(builds[0][0], forked) <= near


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The statuses of what a server ran from now on; None where it could not."""
    statuses: list[int | None] = []
    run = process.run_forked

    def run_and_record(*given: Any) -> int | None:
        statuses.append(run(*given))
        return statuses[-1]

    monkeypatch.setattr(process, "run_forked", run_and_record)
    return statuses


A_BUILD = """
import json, sys
imported = set(sys.modules)
request = json.load(open(sys.argv[1]))
from rknn.api import RKNN
toolkit = RKNN(verbose=True)
toolkit.config(target_platform="rk3588")
assert toolkit.load_onnx(request["onnx"]) == 0
assert toolkit.build(do_quantization=False) == 0
assert toolkit.init_runtime() == 0
later = sorted(set(sys.modules) - imported)
open(request["reply"], "w").write(json.dumps({"ok": True, "later": later}))
"""


def test_a_job_finds_imported_what_a_build_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would import itself costs more than a small build; other versions may import more."""
    (tmp_path / "job").mkdir()
    (tmp_path / "model.onnx").write_bytes(POINTWISE.float_onnx)
    (tmp_path / "worker.py").write_text(A_BUILD)
    statuses, log = recorded(monkeypatch), tmp_path / "log"
    request = {"onnx": str(tmp_path / "model.onnx")}
    reply = process.run_child(request, tmp_path / "job", "the job", 120, log, tmp_path / "worker.py")
    assert statuses == [0]
    assert reply["later"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            CompileOptions("rk2118", POINTWISE.calibration),
            r"died in build \(SIGABRT\): E RKNN: .*unsupported conv",
        ),
        (CompileOptions("rk9999"), r"failed in config \(ValueError: Invalid target_platform 'rk9999'!\)"),
        (CompileOptions("rv1106"), r"failed in build \(returned -1\): E build: .*do_quantization = False"),
        (CompileOptions("rk3588", sparse_infer=True), "rk3588 does not support sparse inference"),
        (CompileOptions("rk3588", config={"nonsense": 1}), "'nonsense' is not support"),
    ],
    ids=["abort", "platform", "minus-one", "sparse", "keyword"],
)
def test_ways_to_fail(options: CompileOptions, words: str) -> None:
    with pytest.raises(ToolkitError, match=words):
        compile_model(POINTWISE.float_onnx, options)

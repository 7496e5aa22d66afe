"""The SDK's mobilenet example as docs/user-models.md has it: the same table, a small network in its place.

Each step of the script (config, load, build, export, inference, eval_perf, eval_memory, accuracy_analysis) is
shown by a test of the suites: on RKNN-Toolkit2 and its simulator, and on a stand-in for both with a board
behind it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from connected.conftest import BUILD_LOG, install_stand_in
from markdown_blocks import CLONE, blocks
from own_models.project import Project, figures, of

from pytest_rknpu import models
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.session.artifacts import compiled
from pytest_rknpu.toolchain import toolkit_status

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STATUS = toolkit_status()
PAGE = CLONE / "docs" / "user-models.md"
ACCURACY = "accuracy/test_accuracy.py"
MEAN, STD = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])


def documented_table() -> str:
    """The block of the page that holds the table."""
    (block,) = (block for block in blocks(PAGE) if 'name = "mobilenet-v2"' in block.text)
    return block.text


@pytest.fixture
def vendor(project: Project) -> Project:
    """The documented boards.toml with the digits classifier in place of mobilenet, fed with pictures."""
    digits, labelled = models.load("digits_cnn"), models.load_labelled("digits_cnn")

    def shown(normalised: np.ndarray) -> np.ndarray:
        return (normalised.transpose(0, 2, 3, 1) * STD + MEAN).astype(np.float32)

    (project.folder / "mobilenetv2-12.onnx").write_bytes(digits.float_onnx)
    np.savez(project.folder / "calibration.npz", input=shown(digits.calibration))
    np.savez(project.folder / "labelled.npz", input=shown(labelled.inputs[:80]), labels=labelled.labels[:80])
    project.boards(documented_table().replace("[1, 3, 224, 224]", "[1, 3, 16, 16]"))
    return project


def test_the_table_says_what_the_script_says(vendor: Project) -> None:
    table = tomllib.loads(documented_table())
    (model,) = table["model"]
    assert model["inputs"][0]["shape"] == [1, 3, 224, 224]
    np.testing.assert_allclose(model["mean"], np.array([0.485, 0.456, 0.406]) * 255, atol=1e-6)
    np.testing.assert_allclose(model["std"], np.array([0.229, 0.224, 0.225]) * 255, atol=1e-6)
    file = load_boards(vendor.folder / "boards.toml")
    assert [board.runtime for board in file.boards] == ["simulator", "connected"]
    assert file.models[0].built_dtype == "w8a8"


@pytest.mark.skipif(
    STATUS.version is None, reason=f"{STATUS.reason}; install it with: {STATUS.install_command}"
)
def test_on_the_simulator(
    vendor: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """config, load_onnx, build, export_rknn, inference, accuracy_analysis, by the toolkit itself."""
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "own-models-cache"))
    suites = (ACCURACY, "accuracy/test_own_models.py", "accuracy/test_cpu_operators.py")
    suites = (*suites, "memory/test_memory_plan.py")
    records = vendor.run(*suites, "--board", "sim-*", "-k", "mobilenet")
    accuracy = of(records, "test_board_agrees_with_the_float_model", "mobilenet-v2")
    assert accuracy["outcome"] == "pass", vendor.output
    assert accuracy["evidence"] == "simulator"
    assert figures(accuracy)["output 0 cosine"] > 0.98
    assert figures(accuracy)["labelled"] == 80
    operators = of(records, "test_no_undeclared_operator_runs_on_the_cpu", "mobilenet-v2")
    assert operators["outcome"] == "pass", operators["message"]
    layers = of(records, "test_each_layer_is_held_against_the_float_model", "mobilenet-v2")
    assert layers["outcome"] == "skip"
    assert "measured, not judged: of " in layers["message"]
    assert figures(layers)["layers"] >= 5
    plan = of(records, "test_no_two_live_tensors_share_memory", "mobilenet-v2")
    assert plan["outcome"] == "pass"
    assert figures(plan)["weight memory"] > 0


def test_on_a_connected_board(vendor: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """init_runtime(target), inference, eval_perf, eval_memory, accuracy_analysis: by a stand-in."""
    compiled.cache_clear()
    install_stand_in(tmp_path, monkeypatch)
    assert BUILD_LOG.exists()
    suites = (ACCURACY, "accuracy/test_own_models.py", "connected/test_connected.py")
    records = vendor.run(*suites, "--board", "evb", "-k", "mobilenet or versions")
    outcomes = {
        record["nodeid"].partition("::")[2].partition("[")[0]: record["outcome"] for record in records
    }
    assert outcomes == {
        "test_board_agrees_with_the_float_model": "pass",
        "test_board_agrees_with_the_quantised_model": "pass",
        "test_each_layer_is_held_against_the_float_model": "skip",  # measured
        "test_versions_are_recorded": "pass",
        "test_memory_agrees_with_the_build_log": "pass",
        "test_memory_stays_within_its_budget": "skip",
        "test_time_of_a_frame_is_measured": "skip",
        "test_operators_on_the_cpu": "pass",
    }, vendor.output
    assert {record["evidence"] for record in records} == {"hardware"}
    layers = of(records, "test_each_layer_is_held_against_the_float_model", "mobilenet-v2")
    assert figures(layers)["cosine on the board of Conv first"] == 0.97
    compiled.cache_clear()

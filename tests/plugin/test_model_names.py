"""Tests marked ``models``: one item per shipped model named, and per [[model]] of boards.toml."""

from __future__ import annotations

import pytest
from plugin.project import Project

MODELS = """
[[board]]
name = "alpha"
soc = "rk3588"
runtime = "emulator"

[[board]]
name = "tethered"
soc = "rv1106"
runtime = "connected"

[[model]]
name = "zebra"
path = "net.onnx"

[[model]]
name = "apple"
path = "net.onnx"
"""
TESTS = """
import pytest

@pytest.mark.requirement("ACC-01")
@pytest.mark.models("probe_chain", "digits_cnn")
def test_all(board, model_name):
    assert model_name

@pytest.mark.requirement("ACC-06")
@pytest.mark.models()
def test_own(npu, model_name):
    assert model_name in ("zebra", "apple")

@pytest.mark.requirement("VER-01")
def test_tethered(connected):
    pass
"""


@pytest.fixture
def own(project: Project) -> Project:
    (project.pytester.path / "net.onnx").write_bytes(b"not looked at")
    project.boards(MODELS)
    project.pytester.makepyfile(TESTS)
    return project


def ids(result: pytest.RunResult) -> list[str]:
    return [line.rpartition("::")[2] for line in result.outlines if "::test_" in line]


def test_ids_are_stable_and_need_no_model(own: Project) -> None:
    """Boards lead; the marker's order, then that of boards.toml. The file is no ONNX, and nobody looks."""
    result = own.run("--collect-only", "-q")
    assert ids(result) == [
        "test_all[alpha-probe_chain]",
        "test_all[alpha-digits_cnn]",
        "test_all[alpha-zebra]",
        "test_all[alpha-apple]",
        "test_own[alpha-zebra]",
        "test_own[alpha-apple]",
        "test_all[tethered-probe_chain]",
        "test_all[tethered-digits_cnn]",
        "test_all[tethered-zebra]",
        "test_all[tethered-apple]",
        "test_tethered[tethered]",
    ]


def test_without_models_of_the_users_one_item_says_so(project: Project) -> None:
    project.pytester.makepyfile(TESTS)
    result = project.run("-rs", "-k", "own or tethered")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        ["*boards.toml has no *model]] table*", '*no selected board has runtime = "connected": alpha*']
    )


def test_a_shipped_name_is_refused(own: Project) -> None:
    own.boards(MODELS.replace("zebra", "digits_cnn"))
    result = own.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ['*model]] "digits_cnn", key "name": pytest-rknpu ships a model of that name*']
    )


def test_a_model_that_is_wrong_refuses_the_run(own: Project) -> None:
    own.boards(MODELS.replace('path = "net.onnx"', 'path = "gone.onnx"', 1))
    result = own.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*model]] 1 ("zebra"), key "path": there is no file *gone.onnx*'])


def test_a_marker_without_the_fixture_is_refused(project: Project) -> None:
    project.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.models("digits_cnn")
        def test_forgotten(board):
            pass
        """
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_forgotten: is marked models, but uses neither*"])


def test_the_fixture_without_the_marker_says_so(project: Project) -> None:
    project.pytester.makepyfile("def test_bare(board, model_name):\n    pass\n")
    result = project.run("--board", "alpha")
    result.stdout.fnmatch_lines(["*uses `model_name`, but is not marked models*"])
    assert result.ret != 0

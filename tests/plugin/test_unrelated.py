"""Projects that have nothing to do with boards must not notice that this package is installed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from plugin.project import Project

ORDINARY = """
import pytest

@pytest.fixture
def board():
    return [[None] * 8] * 8

@pytest.mark.requirement("REQ-77, of some other system")
def test_own_fixture(board):
    assert len(board) == 8

@pytest.mark.parametrize("board, move", [("chess", 1), ("go", 2)])
def test_own_parameters(board, move):
    assert board

@pytest.mark.parametrize("npu", ["one"])
def test_own_npu(npu):
    assert npu == "one"

@pytest.mark.xfail
def test_expected():
    assert False

@pytest.mark.skip
def test_skipped():
    pass

def test_fails():
    raise AssertionError("as it is")
"""


def without_times(text: str) -> str:
    """The output without what differs from run to run."""
    return re.sub(r"in \d+\.\d+s", "in TIME", re.sub(r"plugins: .*|metadata: .*|runpytest-\d+", "", text))


@pytest.mark.parametrize("arguments", [("-v",), ("-q",), ("-rA",), ("--collect-only", "-q"), ("-n", "2")])
def test_output_and_outcome_are_unchanged(pytester: pytest.Pytester, arguments: tuple[str, ...]) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(ORDINARY)
    own = ("-p", "no:rknpu", "-W", "ignore")
    with_plugin, without = (
        pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, *extra)
        for extra in (("-W", "ignore"), own)
    )
    if "-n" in arguments:
        with_plugin.assert_outcomes(**without.parseoutcomes())
    else:
        assert without_times(with_plugin.stdout.str()) == without_times(without.stdout.str())
    assert with_plugin.ret == without.ret


def test_importing_the_plugin_imports_pytest_and_the_standard_library_only() -> None:
    code = (
        "import pytest, sys; before = set(sys.modules); import pytest_rknpu.plugin;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(*(new - sys.stdlib_module_names))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == ["pytest_rknpu"]


def test_a_run_without_boards_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            heavy = {"pydantic", "numpy", "filelock", "onnx", "junit_xml", "onnxruntime"}
            assert not heavy & set(sys.modules)
        """
    )
    run = pytester.runpytest_subprocess(
        "-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"
    )
    run.assert_outcomes(passed=1)
    run.stdout.no_fnmatch_line("*seed*")


def test_a_fixture_that_overrides_ours_wins(project: Project) -> None:
    project.tests(
        "@pytest.fixture\ndef board():\n    return 'mine'\ndef test_it(board):\n    assert board == 'mine'\n"
    )
    project.run().assert_outcomes(passed=1)
    assert project.opened() == []


OWN_WORDS = """
import pytest

@pytest.fixture(params=["user", "group"])
def model_name(request):
    return request.param

@pytest.mark.models("user", "group")
def test_own_fixture_of_that_name(model_name):
    assert model_name in ("user", "group")

@pytest.mark.models
def test_own_mark():
    pass
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_the_mark_models_may_be_another_projects(project: Project, workers: int) -> None:
    project.tests(OWN_WORDS)
    project.run(workers=workers).assert_outcomes(passed=3)


@pytest.mark.parametrize("fixture", ["npu", "latency", "inference"])
def test_a_fixture_that_needs_the_board_which_a_project_replaced_says_so(
    project: Project, fixture: str
) -> None:
    project.tests(
        f"@pytest.fixture\ndef board():\n    return 'mine'\ndef test_it({fixture}):\n    assert {fixture}\n"
    )
    run = project.run()
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(["*HarnessError: *needs the fixture `board` of pytest-rknpu; another one*"])

"""The list of skips at the end of a run: ours folded, those of others as they are, and what to do then."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from plugin.project import Project

from pytest_rknpu.session.builds import why_nothing_is_built
from pytest_rknpu.session.user_artifacts import built
from pytest_rknpu.toolchain import ToolkitStatus

TESTS = """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(3))
def test_skips(npu, n):
    pytest.skip(f"{npu.session.board.name}: {npu.session.soc.name} has no such core")

@pytest.mark.requirement("SYNC-02")
@pytest.mark.parametrize("n", range(2))
def test_waives(npu, n):
    raise Waived(f"layer {n}. Known: it does so")

@pytest.mark.needs("sparse")
def test_lacks(npu):
    pass

@pytest.mark.parametrize("n", range(2))
def test_of_others(n):
    pytest.skip("another's reason" if n else "alpha: another's reason")

@pytest.mark.skip(reason="marked")
def test_marked():
    pass

def test_passes(npu):
    pass
"""

FOLDED = [
    "SKIPPED [[]6] alpha, beta: <SoC> has no such core",
    "SKIPPED [[]4] alpha, beta: waived: it does so",
    "SKIPPED [[]1] alpha: rk3588 has no sparse inference*",
    "SKIPPED [[]1] test_it.py:*: alpha: another's reason",
    "SKIPPED [[]1] test_it.py:*: another's reason",
    "SKIPPED [[]1] test_it.py*: marked",
]


def summary(run: pytest.RunResult) -> list[str]:
    """The short summary's lines."""
    return [line for line in run.outlines if line.startswith(("SKIPPED", "WAIVED"))]


@pytest.mark.parametrize(("option", "workers"), [("-ra", 0), ("-rA", 0), ("-ra", 2)])
def test_one_line_per_cause_and_all_counted(project: Project, option: str, workers: int) -> None:
    project.tests(TESTS)
    run = project.run(option, "--rknpu-report", "out", workers=workers)
    run.stdout.fnmatch_lines_random(FOLDED)
    assert len(summary(run)) == len(FOLDED)
    run.assert_outcomes(skipped=14, passed=3)
    messages = [test["message"] for test in project.results()[1].values()]
    assert sum(message.endswith("rk3576 has no such core") for message in messages) == 3


@pytest.mark.parametrize("arguments", [("-rs",), ("-ra", "-v"), ("-ra", "--no-fold-skipped")])
def test_each_with_its_place_where_asked_for(project: Project, arguments: tuple[str, ...]) -> None:
    project.tests(TESTS)
    run = project.run(*arguments)
    assert "<SoC>" not in run.stdout.str()
    if "--no-fold-skipped" in arguments:
        run.stdout.fnmatch_lines_random(
            [
                "SKIPPED *test_skips[[]beta-2] - *rk3576 has no such core",
                "WAIVED *waives[[]beta-1] - *it does so",
            ]
        )
        assert len(summary(run)) == 14
        return
    run.stdout.fnmatch_lines_random(
        [
            "SKIPPED [[]3] test_it.py:*: alpha: rk3588 has no such core",
            "SKIPPED [[]2] test_it.py:*: waived: layer 1. Known: it does so",
            *FOLDED[3:],
        ]
    )


def test_a_waived_test_that_comes_first_does_not_name_the_rest(project: Project) -> None:
    project.tests(
        "def test_a(npu):\n    raise Waived('known')\ndef test_b(npu):\n    pytest.skip('lacks it')\n"
    )
    run = project.run("-rs", "--board", "alpha")
    assert [line.split()[0] for line in summary(run)] == ["SKIPPED", "SKIPPED"]


def test_no_list_where_none_was_asked_for(project: Project) -> None:
    project.tests(TESTS)
    assert summary(project.run()) == []


def test_a_run_of_others_is_listed_by_pytest(project: Project) -> None:
    project.tests("@pytest.mark.parametrize('n', range(2))\ndef test_it(n):\n    pytest.skip('alpha: no')\n")
    run = project.run("-ra")
    run.stdout.fnmatch_lines(["SKIPPED [[]2] test_it.py:5: alpha: no"])


@pytest.fixture
def without_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_rknpu.toolchain.toolkit_status", lambda: ToolkitStatus(None, "RKNN-Toolkit2 is not installed")
    )


@pytest.mark.usefixtures("without_toolkit")
def test_what_is_missing_is_said_once_with_what_installs_it(pytester: pytest.Pytester) -> None:
    names = ("sim-a", "sim-b")
    boards = (f'[[board]]\nname = "{name}"\nsoc = "rk3588"\nruntime = "simulator"\n' for name in names)
    (pytester.path / "boards.toml").write_text("".join(boards), encoding="utf-8")
    pytester.makepyfile(
        "import pytest\n@pytest.mark.requirement('ACC-01')\n@pytest.mark.parametrize('n', range(12))\n"
        "def test_it(board, n):\n    pass\n"
    )
    run = pytester.runpytest_inprocess("--boards", "boards.toml", "-ra", "-p", "no:cacheprovider")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    text = run.stdout.str()
    assert text.count("pip install") == 1
    run.stdout.fnmatch_lines(
        [
            "not a pass: all 24 tests of requirements were skipped*",
            "next:",
            "  pip install 'pytest-rknpu[[]toolkit]'    (24 tests were skipped for want of it)",
            "SKIPPED [[]24] sim-a, sim-b: RKNN-Toolkit2 is not installed",
        ]
    )


@pytest.mark.usefixtures("without_toolkit")
def test_every_place_that_names_the_command_words_it_alike() -> None:
    from pytest_rknpu.report.remedies import without_remedy

    board = SimpleNamespace(name="sim", runtime="simulator", platform="rk3588")
    proof = why_nothing_is_built(board)  # type: ignore[arg-type]
    assert proof is not None
    model = SimpleNamespace(name="mine", require_source=lambda: None)
    with pytest.raises(pytest.skip.Exception) as skipped:
        built(model, "rk3588")  # type: ignore[arg-type]
    for reason in (proof, str(skipped.value)):
        assert "pip install" in reason
        assert "pip install" not in without_remedy(reason)


def test_a_board_in_quarantine_says_once_why_and_is_one_to_look_at(project: Project) -> None:
    project.boards('[[board]]\nname = "broken-one"\nsoc = "rk3588"\nruntime = "emulator"\n')
    project.tests("@pytest.mark.parametrize('n', range(30))\ndef test_it(npu, n):\n    pass\n")
    run = project.run("-ra")
    cause = [line for line in run.outlines if "no route to host" in line]
    assert len(cause) <= 6, cause  # of the first test at length, in the summary and in short; the quarantine
    run.stdout.fnmatch_lines(
        [
            "next:",
            "  rknpu probe --board broken-one --boards boards.toml    (29 tests were not tried)",
        ]
    )


def test_nothing_to_do_is_not_said(project: Project) -> None:
    project.tests("def test_it(npu):\n    pass\n")
    project.run().stdout.no_fnmatch_line("next:*")

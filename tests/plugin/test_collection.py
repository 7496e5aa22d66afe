"""Collection: items per board, stable ids, markers, and what is refused before anything runs."""

from __future__ import annotations

import pytest
from plugin.project import Project

TWO_TESTS = """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("size", [64, 4096])
@pytest.mark.parametrize("way", ["to", "from"])
def test_first(npu, way, size):
    pass

@pytest.mark.requirement("VER-01")
def test_second(board):
    pass

def test_without_board():
    pass
"""
SIMULATOR = '\n[[board]]\nname = "sim"\nsoc = "rk3588"\nruntime = "simulator"\n'
EMULATOR = '[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n'


def collected(run: pytest.RunResult) -> list[str]:
    """The node ids of ``--collect-only -q``."""
    return [line.partition("::")[2] for line in run.outlines if "::" in line]


def test_ids_lead_with_the_board_and_are_stable(project: Project) -> None:
    project.tests(TWO_TESTS)
    first, second = (collected(project.run("--collect-only", "-q")) for _ in range(2))
    assert first == second
    assert sorted(first) == sorted(
        [
            f"test_first[{board}-{way}-{size}]"
            for board in ("alpha", "beta")
            for size in (64, 4096)
            for way in ("to", "from")
        ]
        + ["test_second[alpha]", "test_second[beta]", "test_without_board"]
    )
    assert project.opened() == []


def test_tests_of_a_board_are_together(project: Project) -> None:
    project.tests(TWO_TESTS)
    boards = [
        "alpha" if "alpha" in name else "beta"
        for name in collected(project.run("--collect-only", "-q"))
        if "[" in name
    ]
    assert boards == sorted(boards)
    assert project.run().ret == 0
    assert project.opened() == ["alpha", "beta"]


def test_npu_needs_a_c_runtime_and_board_does_not(project: Project) -> None:
    project.boards(EMULATOR + SIMULATOR)
    project.tests(TWO_TESTS)
    names = collected(project.run("--collect-only", "-q"))
    assert [name for name in names if name.startswith("test_first") and "sim" in name] == []
    assert "test_second[sim]" in names


def test_rknpu_only_keeps_the_node_ids_that_it_names(project: Project) -> None:
    project.boards(EMULATOR + SIMULATOR)
    project.tests(TWO_TESTS)
    wanted = [
        name for name in collected(project.run("--collect-only", "-q")) if name.startswith("test_second")
    ]
    run = project.run("--collect-only", "-q", "--rknpu-only", f"test_it.py::{wanted[0]}")
    assert collected(run) == wanted[:1]


@pytest.mark.parametrize("more", [(), ("-n", "1")])
def test_rknpu_only_with_a_node_id_that_is_not_there_is_refused(
    project: Project, more: tuple[str, ...]
) -> None:
    """A run of nothing would look as if the failure could not be repeated."""
    project.boards(EMULATOR)
    project.tests(TWO_TESTS)
    run = project.run("--rknpu-only", "test_it.py::test_third[emu]", *more)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["*--rknpu-only test_it.py::test_third[[]emu]: no such test was collected*"])


def test_rknpu_only_finds_a_test_of_suites_that_lie_elsewhere(project: Project) -> None:
    project.boards(EMULATOR)
    project.pytester.mkdir("lib")
    suites = project.pytester.mkdir("lib/_suites")
    (suites / "test_it.py").write_text(f"import pytest\n{TWO_TESTS}")
    run = project.run("lib", "--collect-only", "-q", "--rknpu-only", "test_it.py::test_second[emu]")
    assert len(collected(run)) == 1


MARKED = """
import pytest

@pytest.mark.runtimes("simulator")
def test_marked(board):
    pass
"""


def test_the_mark_runtimes_leaves_out_other_kinds_of_board(project: Project) -> None:
    project.boards(EMULATOR + SIMULATOR)
    project.tests(MARKED)
    names = collected(project.run("--collect-only", "-q"))
    assert [name for name in names if name.startswith("test_marked")] == ["test_marked[sim]"]


def test_the_mark_runtimes_without_a_fitting_board_is_skipped_with_the_proof(project: Project) -> None:
    project.boards(EMULATOR)
    project.tests(MARKED)
    run = project.run("-rs")
    run.assert_outcomes(skipped=1)
    run.stdout.fnmatch_lines(["SKIPPED*no selected board has runtime simulator:*"])


@pytest.mark.parametrize(("names", "wrong"), [('"simulators"', "names 'simulators'"), ("", "names nothing")])
def test_an_unknown_kind_of_board_is_a_usage_error(project: Project, names: str, wrong: str) -> None:
    project.boards(EMULATOR + SIMULATOR)
    project.tests(MARKED.replace('"simulator"', names))
    run = project.run()
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"*test_marked*the mark runtimes {wrong}; known: emulator, simulator*"])


def test_npu_without_any_c_runtime_is_skipped_with_the_proof(project: Project) -> None:
    project.boards(SIMULATOR)
    project.tests(TWO_TESTS)
    run = project.run("-rs")
    run.assert_outcomes(passed=2, skipped=4)
    run.stdout.fnmatch_lines(["SKIPPED*no selected board has a C runtime: sim (simulator)"])


@pytest.mark.parametrize(
    ("arguments", "boards"),
    [
        ((), {"alpha", "beta"}),
        (("--board", "al*"), {"alpha"}),
        (("--soc", "RK3576"), {"beta"}),
        (("--board", "alpha", "--board", "beta"), {"alpha", "beta"}),
    ],
)
def test_selection(project: Project, arguments: tuple[str, ...], boards: set[str]) -> None:
    project.tests("def test_it(board):\n    pass\n")
    assert collected(project.run("--collect-only", "-q", *arguments)) == [
        f"test_it[{name}]" for name in sorted(boards)
    ]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--board", "gamma"), ["gamma", "alpha (rk3588)", "beta (rk3576)"]),
        (("--soc", "rk3568"), ["rk3568", "alpha (rk3588)"]),
        (("--soc", "rk9999"), ["rk9999"]),
        (("--rknpu-seed", "-1"), ["--rknpu-seed -1"]),
        (("--rknpu-wait", "-1"), ["--rknpu-wait -1"]),
        (("--rknpu-wait", "nan"), ["--rknpu-wait nan"]),
        (("--rknpu-fault", "no-such-fault"), ["no-such-fault"]),
        (("--rknpu-fault", "sync-offset-ignored:x=1"), ["--rknpu-fault: fault 'sync-offset-ignored' has no"]),
        (("--rknpu-latency-model", "none"), ['--rknpu-latency-model: unknown latency model "none"']),
        (("--rknpu-report", ""), ["--rknpu-report: is empty"]),
        (("--boards", ""), ["--boards: is empty"]),
    ],
)
def test_wrong_options_are_usage_errors(
    project: Project, arguments: tuple[str, ...], words: list[str], workers: int
) -> None:
    project.tests("def test_it(board):\n    pass\n")
    run = project.run(*arguments, workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    message = " ".join(run.errlines)
    assert "ERROR: " in message
    assert all(word in message for word in words), message
    assert "Traceback" not in message
    assert project.opened() == []


@pytest.mark.parametrize(
    "text", ["", "[[board]\n", '[[board]]\nname = "x"\nsoc = "rk9"\nruntime = "emulator"\n']
)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_boards_file_is_a_usage_error(project: Project, text: str, workers: int) -> None:
    project.boards(text)
    project.tests("def test_it(board):\n    pass\n")
    run = project.run(workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert "boards.toml: " in " ".join(run.errlines)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ini", ["", "[pytest]\nrknpu_boards = gone.toml\n"])
def test_boards_asked_for_and_none_named(project: Project, ini: str, workers: int) -> None:
    project.pytester.makeini(ini)
    project.tests("def test_it(board):\n    pass\ndef test_other():\n    pass\n")
    run = project.run_bare(workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    message = " ".join(run.errlines)
    remedies = ("gone.toml: no such file", "`rknpu init`") if ini else ("give --boards boards.toml",)
    assert all(remedy in message for remedy in remedies)


def test_boards_not_asked_for_are_not_read(project: Project) -> None:
    project.pytester.makeini("[pytest]\nrknpu_boards = gone.toml\n")
    project.tests("def test_it(board):\n    pass\ndef test_other():\n    pass\n")
    project.run_bare("-k", "other").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("workers", [0, 2])
def test_ini_names_the_boards(project: Project, workers: int) -> None:
    project.pytester.makeini("[pytest]\nrknpu_boards = boards.toml\n")
    project.tests("def test_it(board):\n    pass\n")
    run = project.run_bare(workers=workers)
    run.assert_outcomes(passed=2)
    output = run.stdout.str() + run.stderr.str()
    assert "board alpha  rk3588, emulator" in output
    assert "seed " in output


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ('requirement("SYNC-1")', ["SYNC-1'", "did you mean SYNC-1"]),
        ('requirement("HEAT-01")', ["HEAT-01"]),
        ("requirement(7)", ["7"]),
        ('needs("non-cacheable")', ["non-cacheable", "did you mean 'non_cacheable'"]),
    ],
)
def test_unknown_words_in_marks_are_usage_errors(
    project: Project, mark: str, words: list[str], workers: int
) -> None:
    project.tests(f"@pytest.mark.{mark}\ndef test_it(board):\n    pass\n")
    run = project.run(workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    message = " ".join(run.errlines)
    assert "test_it.py::test_it[alpha]" in message
    assert all(word in message for word in words), message
    assert project.opened() == []


def test_marks_of_class_and_function_add_up(project: Project) -> None:
    project.tests(
        """
@pytest.mark.requirement("SYNC-01")
class TestAll:
    @pytest.mark.requirement("SYNC-02", "MEM-01")
    def test_it(self, board):
        pass
"""
    )
    project.run("--rknpu-report", "out", "--board", "alpha")
    assert project.results()[1]["TestAll::test_it[alpha]"]["requirement"] == ["SYNC-01", "SYNC-02", "MEM-01"]


@pytest.mark.parametrize(
    ("need", "board", "proof"),
    [
        ("sparse", "alpha", "rk3588 has no sparse inference"),
        ("rknn_wait", "beta", "rknn_wait is not supported"),
        ("rknn_dup_context", "alpha", "does not export rknn_dup_context"),
        ("hardware", "alpha", "is played by software"),
    ],
)
def test_needs_that_a_board_lacks_skip_with_the_proof(
    project: Project, need: str, board: str, proof: str
) -> None:
    project.tests(
        f"@pytest.mark.needs('{need}')\n@pytest.mark.requirement('MEM-06')\ndef test_it(npu):\n    pass\n"
    )
    project.run("--rknpu-report", "out", "--board", board)
    result = project.results()[1][f"test_it[{board}]"]
    assert result["outcome"] == "skip"
    assert proof in result["message"]


def test_needs_that_a_soc_cannot_have_cost_no_session(project: Project) -> None:
    project.tests("@pytest.mark.needs('sparse')\ndef test_it(npu):\n    pass\n")
    project.run("--board", "alpha")
    assert project.opened() == []


def test_needs_that_a_board_has_run(project: Project) -> None:
    project.tests("@pytest.mark.needs('sparse', 'rknn_run')\ndef test_it(npu):\n    pass\n")
    project.run("--board", "beta").assert_outcomes(passed=1)


def test_markers_are_registered(project: Project) -> None:
    project.tests(
        "@pytest.mark.requirement('SYNC-01')\n@pytest.mark.needs('hardware')\ndef test_it(board):\n    pass\n"
    )
    project.run("--strict-markers", "--board", "alpha").assert_outcomes(skipped=1)


@pytest.mark.parametrize("workers", [0, 2])
def test_tests_are_chosen_by_requirement(project: Project, workers: int) -> None:
    project.tests(TWO_TESTS)
    project.run("--requirement", "ver-*", workers=workers).assert_outcomes(passed=2)
    unknown = project.run("--requirement", "SYNC-1", workers=workers)
    assert unknown.ret == pytest.ExitCode.USAGE_ERROR
    assert "did you mean SYNC-1" in " ".join(unknown.errlines)


def test_a_fault_that_is_none_is_told_in_one_sentence(project: Project) -> None:
    project.tests("def test_it(board):\n    pass\n")
    run = project.run("--rknpu-fault", "sync-to-devise-dropped", "--rknpu-latency-model", "stedy")
    (line,) = [line for line in run.errlines if line.strip()]
    assert line.startswith('ERROR: --rknpu-fault: unknown fault "sync-to-devise-dropped"')
    assert 'did you mean "sync-to-device-dropped"?); --rknpu-latency-model: unknown' in line
    assert "pydantic" not in line


@pytest.mark.parametrize("workers", [0, 2])
def test_boards_whose_tests_cannot_be_told_apart_are_refused(project: Project, workers: int) -> None:
    board = '[[board]]\nname = "{}"\nsoc = "rk3588"\nruntime = "emulator"\n'
    project.boards(board.format("emu") + board.format("emu-b"))
    project.tests('@pytest.mark.parametrize("n", ["1", "b-1"])\ndef test_it(npu, n):\n    pass\n')
    run = project.run(workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    error = " ".join(run.errlines)
    assert "test_it.py::test_it[emu-b-1]: is a test of board emu and one of board emu-b" in error
    assert project.opened() == []
    assert project.run("--board", "emu", workers=workers).ret == 0


def test_a_test_may_name_its_boards(project: Project) -> None:
    project.tests(
        "@pytest.mark.parametrize('board', ['alpha', 'beta'], indirect=True)\n"
        "def test_it(npu, board):\n    assert board.board.name == 'alpha'\n"
    )
    run = project.run("--board", "alpha", "-rs")
    run.assert_outcomes(passed=1, skipped=1)
    run.stdout.fnmatch_lines(["SKIPPED*board beta was not selected, but alpha"])
    assert project.opened() == ["alpha"]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_test_that_names_no_board_of_the_file_is_a_usage_error(project: Project, workers: int) -> None:
    project.tests(
        "@pytest.mark.parametrize('board', ['alfa'], indirect=True)\ndef test_it(board):\n    pass\n"
    )
    run = project.run(workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_it[alfa]: names board 'alfa', which is not in " in " ".join(run.errlines)


def test_a_board_that_is_asked_for_too_late_is_explained(project: Project) -> None:
    project.tests(
        "import unittest\n"
        "def test_it(request):\n    request.getfixturevalue('npu')\n"
        "@pytest.mark.usefixtures('board')\n"
        "class TestCase(unittest.TestCase):\n    def test_it(self):\n        pass\n"
    )
    run = project.run()
    run.assert_outcomes(failed=1, errors=1)
    told = [
        line for line in run.outlines if line.startswith("E ") and "must be an argument of the test" in line
    ]
    assert len(told) == 2

"""How far each board is, as lines: what they say, and that they never take more room than there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from report.samples import result

from pytest_rknpu.report.progress import Progress
from pytest_rknpu.verdict import Outcome

PLAN = {
    "test_a.py::test_x[rk-one]": "rk-one",
    "test_a.py::test_x[rk-one-2]": "rk-one",
    "folder/test_a.py::test_x[board-2]": "board-2",
    "test_a.py::test_of_none": None,
}


def text(progress: Progress, width: int = 80, height: int = 10) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in progress.lines(width, height)]


def ended(progress: Progress, nodeid: str, outcome: Outcome = Outcome.PASS, tried: bool = True) -> None:
    progress.ended(result(nodeid=nodeid, board=PLAN.get(nodeid), outcome=outcome, tried=tried))


def test_boards_wait_run_and_are_done() -> None:
    progress = Progress(PLAN)
    assert text(progress) == ["rk-one    0/2  waiting", "board-2   0/1  waiting", "no board  0/1  waiting"]
    assert progress.started("folder/test_a.py::test_x[board-2]", "10:00:00")
    assert progress.started("test_a.py::test_x[rk-one-2]", "10:00:01")
    ended(progress, "test_a.py::test_of_none")
    assert text(progress) == [
        "rk-one    0/2  10:00:01 test_a.py::test_x[2]",
        "board-2   0/1  10:00:00 test_a.py::test_x",
        "no board  1/1",
    ]
    ended(progress, "test_a.py::test_x[rk-one-2]", Outcome.FAIL)
    assert text(progress)[0] == "rk-one    1/2  1 fail  waiting"


def test_another_attempt_is_no_other_test() -> None:
    progress = Progress(PLAN)
    ended(progress, "test_a.py::test_x[rk-one]", Outcome.INFRA)
    ended(progress, "test_a.py::test_x[rk-one]")
    ended(progress, "test_a.py::test_x[rk-one-2]", Outcome.INFRA, tried=False)
    assert text(progress)[0] == "rk-one    2/2  1 infra, 1 not tried"


def test_what_was_not_planned_is_none_of_its_business() -> None:
    progress = Progress(PLAN)
    assert not progress.started("test_other.py::test_y", "10:00:00")
    ended(progress, "waivers.toml::waiver_1[rk-one]", Outcome.INCONCLUSIVE)
    assert text(progress)[0] == "rk-one    0/2  waiting"


def test_green_words_of_outcomes_are_not_counted_as_unmet() -> None:
    progress = Progress(PLAN)
    ended(progress, "test_a.py::test_x[rk-one]", Outcome.WAIVED)
    ended(progress, "test_a.py::test_x[rk-one-2]", Outcome.SKIP)
    assert text(progress)[0] == "rk-one    2/2"


def test_equal_boards_run_several_at_a_time() -> None:
    progress = Progress({f"t.py::t[pool-{n}]": "pool" for n in range(3)})
    for n in range(3):
        progress.started(f"t.py::t[pool-{n}]", f"10:00:0{n}")
    assert text(progress) == ["pool  0/3  10:00:00 t.py::t[0] and 2 more"]


def test_without_room_for_all_those_that_run_come_first() -> None:
    progress = Progress({f"t.py::t[b{n}]": f"b{n}" for n in range(100)})
    progress.started("t.py::t[b70]", "10:00:00")
    progress.ended(result(nodeid="t.py::t[b80]", board="b80", outcome=Outcome.FAIL))
    progress.ended(result(nodeid="t.py::t[b90]", board="b90", outcome=Outcome.PASS))
    assert text(progress, height=3) == [
        "b70  0/1          10:00:00 t.py::t",
        "b80  1/1  1 fail",
        "98 more boards  1/98",
    ]
    assert text(progress, height=1) == ["100 more boards  2/100  1 fail"]


@given(
    names=st.lists(st.text("ab-\u5b57", min_size=1, max_size=40), min_size=1, max_size=40, unique=True),
    width=st.integers(2, 120),
    height=st.integers(0, 30),
)
def test_it_never_takes_more_room(names: list[str], width: int, height: int) -> None:
    progress = Progress({f"t.py::t[{name}]": name for name in names})
    for name in names[::2]:
        progress.started(f"t.py::t[{name}]", "10:00:00")
    progress.ended(result(nodeid=f"t.py::t[{names[0]}]", board=names[0], outcome=Outcome.FAIL))
    lines = progress.lines(width, height)
    assert len(lines) <= height
    assert all(sum(len(piece.text) for piece in line) < width for line in lines)

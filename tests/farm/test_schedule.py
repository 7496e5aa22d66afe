"""Which worker gets what: pure decisions, and the scheduler against workers that are made up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_rknpu.farm.schedule import BoardScheduling, board_in, scope_of

NAMES = ["rk3588", "rk3588-lab", "rv1106", "a.b"]


@pytest.mark.parametrize(
    ("nodeid", "board"),
    [
        ("s/test_a.py::test_x[rk3588]", "rk3588"),
        ("s/test_a.py::test_x[rk3588-64-to]", "rk3588"),
        ("s/test_a.py::test_x[rk3588-lab]", "rk3588-lab"),
        ("s/test_a.py::test_x[rk3588-lab-64]", "rk3588-lab"),
        ("s/test_a.py::TestC::test_x[rv1106-[odd]::id]", "rv1106"),
        ("s/test_a.py::test_x[rk3588x-64]", None),
        ("s/test_a.py::test_x[64-rk3588]", None),
        ("s/test_a.py::test_x[axb-1]", None),
        ("s/test_a.py::test_x[a.b-1]", "a.b"),
        ("s/test_a.py::test_x", None),
        ("s/[rk3588]/test_a.py::test_x", None),
        ("s/test_a.py", None),
    ],
)
def test_the_board_of_a_node_id(nodeid: str, board: str | None) -> None:
    assert board_in(nodeid, NAMES) == board
    assert board_in(nodeid, list(reversed(NAMES))) == board


def test_scopes_are_boards_or_files() -> None:
    one, other = "s/test_a.py::test_x[rk3588-1]", "t/test_b.py::test_y[rk3588]"
    assert scope_of(one, "rk3588") == scope_of(other, "rk3588")
    assert scope_of("s/test_a.py::test_x", None) == "s/test_a.py"
    assert scope_of("rk3588::test_x", None) != scope_of("s/test_a.py::test_x[rk3588]", "rk3588")


class Worker:
    """Takes orders and does what the test tells it to."""

    def __init__(self, name: str) -> None:
        self.gateway = type("Gateway", (), {"id": name})()
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def scheduler(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A scheduler for two workers."""
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen", "popen"], raising=False)
    monkeypatch.setattr(pytestconfig.option, "loadscopereorder", True, raising=False)
    return BoardScheduling(pytestconfig, None, lambda nodeid: board_in(nodeid, NAMES))


def started(scheduler: Any, tests: list[str]) -> tuple[Worker, Worker]:
    """Two workers that have collected ``tests``."""
    workers = Worker("w0"), Worker("w1")
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    return workers


def work_off(scheduler: Any, worker: Worker, done: set[tuple[Worker, int]]) -> None:
    """The worker finishes everything that it has been given so far."""
    for index in list(worker.given):
        if (worker, index) not in done:
            done.add((worker, index))
            scheduler.mark_test_complete(worker, index)


def test_each_board_stays_on_one_worker_and_all_tests_run_once(scheduler: Any) -> None:
    tests = [f"t.py::test_{n}[{board}]" for n in range(4) for board in NAMES]
    tests += ["u.py::test_h", "u.py::test_i"]
    workers = started(scheduler, tests)
    done: set[tuple[Worker, int]] = set()
    while scheduler.has_pending:
        for worker in workers:
            work_off(scheduler, worker, done)
    given = {worker: [tests[index] for index in worker.given] for worker in workers}
    assert sorted(itertools.chain(*given.values())) == sorted(tests)
    for board in NAMES:
        places = [worker for worker, own in given.items() if board in {board_in(id, NAMES) for id in own}]
        assert len(places) == 1


def test_a_worker_that_dies_loses_one_test_and_its_finished_boards_stay_finished(scheduler: Any) -> None:
    tests = [f"t.py::test_{n}[{board}]" for board in ("rk3588", "rv1106") for n in range(4)]
    tests.append("u.py::test_h")
    first, second = started(scheduler, tests)
    done: set[tuple[Worker, int]] = set()
    work_off(scheduler, second, done)
    scheduler.mark_test_complete(first, first.given[0])
    culprit = scheduler.remove_node(first)
    assert culprit == tests[first.given[1]]
    third = Worker("w2")
    scheduler.add_node(third)
    scheduler.add_node_collection(third, tests)
    scheduler.schedule()
    while scheduler.has_pending:
        for worker in (second, third):
            work_off(scheduler, worker, done)
    rest = [tests[index] for worker, index in done] + [tests[first.given[0]], culprit]
    assert sorted(rest) == sorted(tests)


def test_a_worker_that_dies_with_nothing_to_do_blames_no_test(scheduler: Any) -> None:
    first, second = started(scheduler, ["t.py::test_1[rk3588]", "t.py::test_1[rv1106]"])
    for worker in (first, second):
        scheduler.mark_test_complete(worker, worker.given[0])
    assert scheduler.remove_node(first) is None
    assert not scheduler.has_pending

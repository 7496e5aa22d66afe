"""Contexts in several threads: layers alternate, results do not mix, destruction waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from emulated_board import Board, ZeroCopy, bound, random_bytes, zero_copy
from qdq_models import chain

from pytest_rknpu.emulator import pack
from pytest_rknpu.emulator.npu_queue import NpuQueue

MODEL = pack(chain(), "rk3588")
WORKERS, ROUNDS = 3, 60


def together(*works: Callable[[], None]) -> None:
    """Run all works at once, started behind a barrier; the first exception is raised here."""
    barrier, failures = threading.Barrier(len(works)), []

    def body(work: Callable[[], None]) -> None:
        barrier.wait(timeout=10)
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=body, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "deadlock"
    if failures:
        raise failures[0]


def mixed_results(ios: list[ZeroCopy]) -> int:
    """How many of the outputs differ from what each context computes alone."""
    alone = []
    for number, io in enumerate(ios):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        alone.append(io.output.cpu.copy())
    wrong = [0] * len(ios)

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            ios[number].run()
            wrong[number] += int((ios[number].output.cpu != alone[number]).any())

    together(*(lambda number=number: work(number) for number in range(len(ios))))  # type: ignore[misc]
    return sum(wrong)


@pytest.mark.parametrize("relation", ["independent", "duplicates"])
def test_results_do_not_mix(relation: str) -> None:
    board = Board()
    ios = [zero_copy(board, MODEL)]
    for _ in range(WORKERS - 1):
        ios.append(
            bound(board, board.duplicate(ios[0].context))
            if relation == "duplicates"
            else zero_copy(board, MODEL)
        )
    assert mixed_results(ios) == 0


def test_layers_really_alternate() -> None:
    """Duplicates that share activations show it: without interleaving every run would be right."""
    board = Board(faults=["dup-shares-activations"])
    ios = [zero_copy(board, MODEL)]
    ios += [bound(board, board.duplicate(ios[0].context)) for _ in range(WORKERS - 1)]
    assert mixed_results(ios) > ROUNDS // 10


def test_the_queue_serves_in_turn() -> None:
    queue, order, ready = NpuQueue(), [], threading.Event()

    def first() -> None:
        for number in range(5):
            with queue.job():
                if number == 0:
                    assert ready.wait(10)
                    while not queue.waiting:
                        threading.Event().wait(0.001)
                order.append("a")

    def second() -> None:
        ready.set()
        for _ in range(4):
            with queue.job():
                order.append("b")

    holder = threading.Thread(target=first)
    holder.start()
    second_thread = threading.Thread(target=second)
    second_thread.start()
    for thread in (holder, second_thread):
        thread.join(20)
        assert not thread.is_alive()
    assert sorted(order) == ["a"] * 5 + ["b"] * 4
    assert order[:2] == ["a", "b"], "who waited comes next, not who had it before"


def test_a_job_that_fails_lets_the_next_one_in() -> None:
    queue = NpuQueue()
    with pytest.raises(ZeroDivisionError), queue.job():
        raise ZeroDivisionError
    with queue.job():
        assert queue.waiting == 0


def test_destruction_waits_for_a_run_and_refuses_the_next() -> None:
    board = Board()
    io = zero_copy(board, MODEL)
    codes: list[int] = []

    def run() -> None:
        for _ in range(200):
            codes.append(board.call("run", io.context, 0))

    together(run, lambda: board.check("destroy", io.context))
    assert set(codes) <= {0, -7}
    assert codes[-1] == -7


def test_memory_may_be_destroyed_while_it_is_in_use() -> None:
    board = Board()
    io = zero_copy(board, MODEL)
    codes: list[int] = []

    def run() -> None:
        for _ in range(200):
            codes.append(board.call("run", io.context, 0))

    together(run, lambda: board.check("destroy_mem", io.context, io.output.address))
    assert set(codes) <= {0, -9}
    assert codes[-1] == -9


def test_creating_and_destroying_in_threads() -> None:
    board = Board()
    expected = zero_copy(board, MODEL)
    expected.input.cpu[:] = random_bytes(len(expected.input.cpu), 0)
    expected.run()

    def work() -> None:
        for _ in range(10):
            io = zero_copy(board, MODEL)
            io.input.cpu[:] = expected.input.cpu
            io.run()
            np.testing.assert_array_equal(io.output.cpu, expected.output.cpu)
            for memory in (io.input, io.output):
                board.check("destroy_mem", io.context, memory.address)
            board.check("destroy", io.context)

    together(*[work] * WORKERS)

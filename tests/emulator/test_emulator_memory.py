"""The memory model against a naive one, byte by byte, and what every legal program may rely on."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pytest_rknpu.emulator import pages
from pytest_rknpu.emulator.memory import LINE_BYTES, CacheBehaviour, Storage

LINES = 6
SIZE = LINES * LINE_BYTES


def storage(behaviour: CacheBehaviour | None = None, seed: int = 0, *, coherent: bool = False) -> Storage:
    made = Storage(
        pages.private(pages.PAGE_BYTES),
        np.random.default_rng(seed),
        behaviour or CacheBehaviour(),
        coherent=coherent,
    )
    assert made.size == pages.PAGE_BYTES
    return made


class Naive:
    """The model as the text of `memory` describes it, with plain loops over bytes and lines.

    Only for behaviours without chance: a line is fetched again always or never, replaced always or never.
    """

    def __init__(self, refetch: bool, evicts: bool) -> None:
        self.refetch, self.evicts = refetch, evicts
        self.cpu, self.ddr, self.before = [0] * SIZE, [0] * SIZE, [0] * SIZE
        self.valid, self.dirty = [refetch] * LINES, [False] * LINES

    def _bytes(self, line: int) -> range:
        return range(line * LINE_BYTES, (line + 1) * LINE_BYTES)

    def _look(self) -> None:
        for position in range(SIZE):
            if self.cpu[position] != self.before[position]:
                self.valid[position // LINE_BYTES] = self.dirty[position // LINE_BYTES] = True
        self.before = list(self.cpu)

    def _fetch(self, line: int) -> None:
        for position in self._bytes(line):
            self.cpu[position] = self.before[position] = self.ddr[position]

    def _write_back(self, line: int) -> None:
        if self.dirty[line]:
            for position in self._bytes(line):
                self.ddr[position] = self.cpu[position]
            self.dirty[line] = False

    def cpu_write(self, start: int, data: bytes) -> None:
        self.cpu[start : start + len(data)] = list(data)

    def clean(self, start: int, end: int) -> None:
        self._look()
        for line in range(LINES):
            if any(start <= position < end for position in self._bytes(line)):
                self._write_back(line)

    def invalidate(self, start: int, end: int) -> None:
        self._look()
        for line in range(LINES):
            covered = [start <= position < end for position in self._bytes(line)]
            if not any(covered):
                continue
            if not all(covered):
                self._write_back(line)
            self.dirty[line], self.valid[line] = False, self.refetch
            self._fetch(line)

    def device_write(self, start: int, data: bytes) -> None:
        self._look()
        self.ddr[start : start + len(data)] = list(data)
        for line in range(LINES):
            if not self.valid[line]:
                self._fetch(line)

    def age(self) -> None:
        self._look()
        for line in range(LINES) if self.evicts else ():
            self._write_back(line)
            self.valid[line] = self.refetch
            self._fetch(line)


ranges = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(sorted).map(tuple)
writes = st.integers(0, SIZE - 1).flatmap(
    lambda start: st.tuples(st.just(start), st.binary(min_size=1, max_size=min(150, SIZE - start)))
)


class SameAsNaive(RuleBasedStateMachine):
    """Any sequence of operations leaves both models with the same bytes in both views."""

    @initialize(refetch=st.booleans(), evicts=st.booleans())
    def make(self, refetch: bool, evicts: bool) -> None:
        self.naive = Naive(refetch, evicts)
        self.real = storage(CacheBehaviour(refetch=float(refetch), evictions=float(evicts)))

    @rule(write=writes)
    def cpu_writes(self, write: tuple[int, bytes]) -> None:
        start, data = write
        self.real.cpu[start : start + len(data)] = np.frombuffer(data, np.uint8)
        self.naive.cpu_write(start, data)

    @rule(write=writes)
    def device_writes(self, write: tuple[int, bytes]) -> None:
        self.real.device_write(write[0], np.frombuffer(write[1], np.uint8))
        self.naive.device_write(*write)

    @rule(covered=ranges)
    def clean(self, covered: tuple[int, int]) -> None:
        self.real.clean(*covered)
        self.naive.clean(*covered)

    @rule(covered=ranges)
    def invalidate(self, covered: tuple[int, int]) -> None:
        self.real.invalidate(*covered)
        self.naive.invalidate(*covered)

    @rule(after_run=st.booleans())
    def age(self, after_run: bool) -> None:
        (self.real.age_after_run if after_run else self.real.age)()
        self.naive.age()

    @invariant()
    def same_bytes(self) -> None:
        if not hasattr(self, "naive"):
            return
        assert self.real.cpu[:SIZE].tolist() == self.naive.cpu
        assert self.real.device_read(0, SIZE).tolist() == self.naive.ddr


TestSameAsNaive = SameAsNaive.TestCase
TestSameAsNaive.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.integers(0, 10_000), st.lists(st.sampled_from("wWris"), max_size=40))
@settings(max_examples=60, deadline=None)
def test_lines_that_are_not_valid_have_one_content(seed: int, steps: str) -> None:
    """With chance: the two views differ in valid lines only, and in what the CPU wrote since."""
    random = np.random.default_rng(seed)
    made = storage(CacheBehaviour(refetch=0.5, evictions=0.3), seed)
    for step in steps:
        start, end = sorted(random.integers(0, SIZE, 2))
        if step == "w":
            made.cpu[start:end] = random.integers(0, 256)
        elif step == "W":
            made.device_write(start, random.integers(0, 256, end - start, dtype=np.uint8))
        elif step == "r":
            made.age()
        elif step == "i":
            made.invalidate(start, end)
        else:
            made.clean(start, end)
        made.observe()
        differing = (made.cpu != made.device).reshape(-1, LINE_BYTES).any(axis=1)
        assert not (differing & ~made.valid).any()
        assert not (made.dirty & ~made.valid).any()


@given(st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_correct_hand_overs_are_right_whatever_the_caches_do(seed: int) -> None:
    random = np.random.default_rng(seed)
    made = storage(CacheBehaviour(refetch=float(random.random()), evictions=float(random.random())), seed)
    for _ in range(10):
        written = random.integers(0, 256, SIZE, dtype=np.uint8)
        made.cpu[:SIZE] = written
        made.age()
        made.clean(0, SIZE)
        made.age()
        np.testing.assert_array_equal(made.device_read(0, SIZE), written)
        computed = random.integers(0, 256, SIZE, dtype=np.uint8)
        made.device_write(0, computed)
        made.age()
        made.invalidate(0, SIZE)
        made.age()
        np.testing.assert_array_equal(made.cpu[:SIZE], computed)


def filled(byte: int, size: int = SIZE) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.full(size, byte, np.uint8)


STILL = CacheBehaviour(refetch=1.0, evictions=0.0)


def test_without_clean_the_device_reads_old_bytes_and_without_invalidate_the_cpu_does() -> None:
    made = storage(STILL)
    made.cpu[:SIZE] = 1
    made.observe()
    assert not made.device_read(0, SIZE).any()
    made.clean(0, SIZE)
    made.device_write(0, filled(2))
    assert (made.cpu[:SIZE] == 1).all()
    made.invalidate(0, SIZE)
    assert (made.cpu[:SIZE] == 2).all()


def test_cleaning_does_not_bring_a_stale_line_back() -> None:
    """BIDIRECTIONAL on an output: its clean half must not overwrite the result."""
    made = storage(STILL)
    made.device_write(0, filled(7))
    made.clean(0, SIZE)
    made.invalidate(0, SIZE)
    assert (made.cpu[:SIZE] == 7).all()


def test_invalidating_loses_what_the_cpu_wrote() -> None:
    made = storage(STILL)
    made.cpu[:SIZE] = 1
    made.invalidate(0, SIZE)
    assert not made.cpu[:SIZE].any()


def test_a_partly_covered_line_is_written_back_before_it_is_dropped() -> None:
    """The neighbour survives, at the price of the device's bytes in the same line."""
    made = storage(STILL)
    made.cpu[:32] = 5
    made.device_write(32, filled(9, LINE_BYTES))
    made.invalidate(32, 32 + LINE_BYTES)
    assert (made.cpu[:32] == 5).all()
    assert (made.device_read(0, 32) == 5).all()
    assert not made.cpu[32:64].any(), "the CPU's stale bytes came back over the device's"
    # The second line was clean, so that dropping it shows what the device wrote.
    assert (made.cpu[64:96] == 9).all()


def test_neighbours_are_lost_where_edges_are_not_cleaned() -> None:
    made = storage(CacheBehaviour(refetch=1.0, evictions=0.0, edges_are_cleaned=False))
    made.cpu[:32] = 5
    made.invalidate(32, 64)
    assert not made.cpu[:64].any()


def test_a_dirty_line_is_written_back_over_the_device_when_it_is_replaced() -> None:
    made = storage(CacheBehaviour(refetch=1.0, evictions=1.0))
    made.cpu[:SIZE] = 1
    made.observe()
    made.device_write(0, filled(2))
    made.age()
    assert (made.device_read(0, SIZE) == 1).all()


def test_cleaned_lines_come_back_where_cleaning_leaves_them_dirty() -> None:
    behaviour = CacheBehaviour(evictions=0.0, cleaning_clears_dirty=False, writes_back_after_run=True)
    made = storage(behaviour)
    made.cpu[:SIZE] = 1
    made.clean(0, SIZE)
    made.device_write(0, filled(2))
    made.age_after_run()
    assert (made.device_read(0, SIZE) == 1).all()


def test_a_write_of_equal_bytes_is_not_seen() -> None:
    """The documented limit of memory that cannot be watched."""
    made = storage(STILL)
    made.cpu[:SIZE] = 1
    made.clean(0, SIZE)
    made.device_write(0, filled(2))
    made.cpu[:SIZE] = 1
    made.clean(0, SIZE)
    assert (made.device_read(0, SIZE) == 2).all()


def test_coherent_memory_has_one_view() -> None:
    made = storage(coherent=True)
    made.cpu[:SIZE] = 1
    assert (made.device_read(0, SIZE) == 1).all()
    made.device_write(0, filled(2))
    assert (made.cpu[:SIZE] == 2).all()
    for operation in (made.clean, made.invalidate):
        operation(0, SIZE)
    made.age()
    assert (made.cpu[:SIZE] == 2).all()


def test_equal_seeds_give_equal_histories() -> None:
    def history(seed: int) -> bytes:
        made, seen = storage(CacheBehaviour(refetch=0.5, evictions=0.2), seed), b""
        for byte in range(1, 20):
            made.cpu[:SIZE] = byte
            made.age()
            seen += made.device_read(0, SIZE).tobytes()
            made.device_write(0, filled(100 + byte))
        return seen

    assert history(1) == history(1)
    assert len({history(seed) for seed in range(5)}) == 5


def test_memory_is_found_again_by_its_descriptor() -> None:
    made = pages.allocate(5000, os.close)
    duplicate = os.dup(made.fd)
    try:
        assert pages.identity(duplicate) == pages.identity(made.fd)
        foreign = pages.adopt(duplicate, os.close)
        foreign.bytes[4999] = 42
        assert len(made.bytes) == pages.rounded(5000)
        assert made.bytes[4999] == 42
        foreign.release()
    finally:
        os.close(duplicate)
        made.release()


def test_released_pages_give_descriptor_and_mapping_back() -> None:
    gc.collect()  # other tests' boards
    before = len(os.listdir("/proc/self/fd"))
    made, lost = (pages.allocate(4096, os.close) for _ in range(2))
    assert len(os.listdir("/proc/self/fd")) > before
    made.release()
    made.release()
    del lost
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", [1, 4096, 4097])
def test_pages_are_whole(size: int) -> None:
    assert pages.rounded(size) % pages.PAGE_BYTES == 0
    assert 0 <= pages.rounded(size) - size < pages.PAGE_BYTES

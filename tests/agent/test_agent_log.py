"""The runtime's log: nothing that matters is lost, and no flood of it fills a board or a reply."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent.log_capture import LogFile
from pytest_rknpu.agent.log_extract import LogExtract

lines = st.lists(
    st.sampled_from([b"", b"I RKNN: harmless", b"E RKNN: bad", b"x" * 300, b"\xff\xfe", b"W RKNN: hm"]),
    max_size=120,
)


@given(lines=lines, cuts=st.lists(st.integers(0, 3000), max_size=10), limit=st.integers(3000, 6000))
def test_the_extract_does_not_depend_on_the_portions(lines: list[bytes], cuts: list[int], limit: int) -> None:
    log = b"\n".join(lines)
    whole, parts = LogExtract(limit), LogExtract(limit)
    whole.feed(log)
    edges = sorted({0, *(cut for cut in cuts if cut < len(log)), len(log)})
    for begin, end in itertools.pairwise(edges):
        parts.feed(log[begin:end])
    assert parts.text() == whole.text()


@given(lines=lines, limit=st.integers(3000, 60000))
def test_a_log_within_the_limit_is_whole(lines: list[bytes], limit: int) -> None:
    log = b"\n".join(lines)[: limit // 3]
    extract = LogExtract(limit)
    extract.feed(log)
    assert extract.text() == log.decode("utf-8", "replace")


@given(before=st.integers(0, 3000), after=st.integers(0, 3000))
def test_an_error_line_outlives_the_cut(before: int, after: int) -> None:
    extract = LogExtract(6000)
    noise = b"I RKNN: nothing of interest in this line\n"
    extract.feed(noise * before + b"E RKNN: the one that counts\n" + noise * after + b"the end")
    text = extract.text()
    assert "E RKNN: the one that counts\n" in text
    assert text.endswith("the end")
    assert len(text) < 6300


def test_more_error_lines_than_fit_are_counted() -> None:
    extract = LogExtract(3000)
    extract.feed(b"E RKNN: again and again\n" * 1000)
    text = extract.text()
    shown = text.count("E RKNN")
    assert f"[and {1000 - shown} more error lines]" in text


def test_a_line_without_end_is_bounded() -> None:
    extract = LogExtract(60_000)
    for _ in range(100):
        extract.feed(b"y" * 10_000)
    assert len(extract.text()) < 61_000


def test_the_memory_of_a_read_log_is_given_back() -> None:
    log = LogFile()
    try:
        for _ in range(5):
            os.write(log.descriptor, b"I RKNN: line\n" * 100_000)
            log.pump()
        assert os.fstat(log.descriptor).st_blocks * 512 < 2**20
        assert len(log.take()) < 300_000
        os.write(log.descriptor, b"after")
        assert log.take() == "after"
        assert log.take() == ""
    finally:
        log.close()


def test_descriptors_are_captured_and_given_back() -> None:
    # In a process of its own: pytest holds this one's descriptors.
    script = """
import ctypes, os, sys
from pytest_rknpu.agent.log_capture import LogCapture
print("before"); capture = LogCapture(); capture.start()
print("python"); os.write(2, b"descriptor\\n"); ctypes.CDLL(None).printf(b"C\\n")
ctypes.CDLL(None).system(b"echo child")
taken = capture.take(); os.write(1, b"late\\n"); late = capture.take(); capture.stop()
print("after", sorted(taken.split()), late.split())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "before\nafter ['C', 'child', 'descriptor', 'python'] ['late']\n"
    assert done.stderr == ""

"""Known lines of the runtime's log, as people reported them, and what is said of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.session.runtime_log import SAYINGS, explanation, sayings_in, versions_in

NEWER_MODEL = """\
I RKNN: [21:32:53.643] RKNN Runtime Information: librknnrt version: 1.3.0 (c193be371@2022-05-04T20:16:33)
I RKNN: [21:32:53.643] RKNN Driver Information: version: 0.7.2
E RKNN: [21:32:53.643] 6, 1
E RKNN: [21:32:53.643] Invalid RKNN model version 6
E RKNN: [21:32:53.643] rknn_init, load model failed!
"""

LINES = [
    (NEWER_MODEL, "newer than this runtime", True),
    ("E RKNN: [13:32:31.073] Invalid RKNN format", "newer than this runtime", True),
    (
        "E RKNN: [16:12:13.845] failed to open rknpu module, need to insmod rknpu dirver!",
        "may not open",
        True,
    ),
    ("E RKNN: Mismatch driver version, librknnmrt requires driver version >= 0.9.3", "too old", True),
    ("W RKNN: Current driver version: 0.9.2, recommend to upgrade the driver", "it works", False),
    (
        "E RKNN: failed to submit!, op id: 1, task start: 0, run task counter: 0, int status: 0",
        "0.9.6",
        False,
    ),
    ("E RKNN: failed to convert handle(1021) to fd, ret: -1, errno: 24", "file descriptors", False),
    ("E RKNN: failed to allocate handle, ret: -1, errno: 14, errstr: Bad address", "no memory left", False),
    ("W RKNN: Not support core mask: 3, fallback to single core auto mode", "another one", False),
    ("E RKNN: size_with_stride larger than model origin size, if need run OutputOperator", "padded", False),
    (
        "E RKNN: REGTASK: The bit width of field value exceeds the limit, target: v2",
        "results are wrong",
        False,
    ),
    ("!!! It is detected that some necessary files are missing in the container.", "renderD129", True),
    ("OSError: /usr/lib/librknnrt.so: invalid ELF header", "copy it again", True),
]


@pytest.mark.parametrize(("log", "words", "fatal"), LINES)
def test_a_known_line_is_explained(log: str, words: str, fatal: bool) -> None:
    (saying,) = sayings_in(log)
    assert words in explanation(log)
    assert saying.source in explanation(log)
    assert saying.fatal is fatal


def test_every_saying_has_a_line() -> None:
    assert {saying for log, _, _ in LINES for saying in sayings_in(log)} == set(SAYINGS)


def test_versions_are_there_although_init_failed() -> None:
    assert versions_in(NEWER_MODEL) == {
        "runtime": "1.3.0 (c193be371@2022-05-04T20:16:33)",
        "driver": "0.7.2",
    }
    assert versions_in("nothing") == {}


@given(st.text())
def test_no_log_makes_it_raise(text: str) -> None:
    explanation(text)
    versions_in(text)


def test_quiet_logs_mean_nothing() -> None:
    assert explanation("I RKNN: [00:00:00.000] all is well\nD RKNN: failed\n") == ""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "piece", ["Mismatch driver version", "Current driver version:", "failed to convert handle"]
)
def test_a_long_log_is_read_to_its_end(piece: str) -> None:
    """A pattern that tries again from everywhere would take hours for it."""
    explanation((piece + " ") * 40_000)

"""Which lines of the toolkit's output tell what went wrong."""

from __future__ import annotations

from pytest_rknpu.toolchain.log_lines import clean_lines, error_lines

# As printed by RKNN-Toolkit2 2.5.0, shortened.
RAISED = (
    "I rknn-toolkit2 version: 2.5.0\n"
    "\x1b[1;31mE\x1b[0m \x1b[1;31mbuild: Traceback (most recent call last):\n"
    '  File "rknn/api/rknn_log.py", line 344, in error_catch_wrapper\n'
    "ValueError: The input 0 of NonZero('o') need to be constant!\n"
    "\x1b[0m\n"
    "I ===================== WARN(0) =====================\n"
    "\x1b[1;31mE\x1b[0m \x1b[1;31mrknn-toolkit2 version: 2.5.0\x1b[0m\n"
)
SUCCESSFUL = (
    "I OpFusing 0:   0%|    | 0/100 [00:00<?, ?it/s]\rI OpFusing 0: 100%|#| 100/100 [00:00<00:00, 9it/s]\n"
    "I rknn building ...\n"
    "E RKNN: [10:32:38.048] Unkown op target: 0\n"
    "\x1b[1;33mW\x1b[0m \x1b[1;33mRestore temperate env rknn_compute_order=\x1b[0m\n"
    "I rknn building done.\n"
)


def test_a_traceback_is_worth_its_reason() -> None:
    assert error_lines(RAISED) == ["E build: ValueError: The input 0 of NonZero('o') need to be constant!"]


def test_a_traceback_without_a_reason_stays_as_it_is() -> None:
    assert error_lines("E load: Traceback (most recent call last):\nI next\nValueError: of another\n") == [
        "E load: Traceback (most recent call last):"
    ]


def test_what_successful_builds_print_is_no_error() -> None:
    assert error_lines(SUCCESSFUL) == []


def test_colours_and_progress_bars_are_removed() -> None:
    assert clean_lines(SUCCESSFUL) == [
        "I rknn building ...",
        "E RKNN: [10:32:38.048] Unkown op target: 0",
        "W Restore temperate env rknn_compute_order=",
        "I rknn building done.",
    ]


def test_only_the_last_lines_and_each_once() -> None:
    log = "\n".join(f"E RKNN: {number}" for number in range(20)) + "\nE RKNN: 19\n"
    assert error_lines(log, limit=3) == ["E RKNN: 17", "E RKNN: 18", "E RKNN: 19"]
    assert error_lines("") == []

"""A planted fault is named where it was planted, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import HarnessError
from pytest_rknpu.measure import MemoryLayout, Tolerance, locate, locate_violations
from pytest_rknpu.measure.localise import LINE_BYTES, Part, element_offsets

INT8 = MemoryLayout(atom=16, element_bytes=1)


def outputs(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(4).standard_normal(shape).astype(np.float32)


def test_nothing_differs() -> None:
    reference = outputs((2, 32, 4, 4))
    assert locate(reference, reference.copy(), 0.0, INT8) is None
    assert locate(reference, reference + 0.5, 0.6, INT8) is None


@given(st.integers(0, 31), st.booleans())
def test_a_stale_cache_line_is_named(line: int, float16: bool) -> None:
    """All elements of one 64-byte line, whatever the layout: four pixels of one channel group (int8)."""
    layout = MemoryLayout(8, 2) if float16 else INT8
    reference = outputs((1, 32, 8, 8))
    actual = reference.copy()
    inside = element_offsets((32, 8, 8), layout) // LINE_BYTES == line
    actual[0][inside] += 1
    found = locate(reference, actual, 0.5, layout)
    assert found is not None
    assert found.wrong == inside.sum() == LINE_BYTES // layout.element_bytes
    assert (found.broken_lines, found.whole_lines) == (1, 1)
    assert found.lines == (Part(line, line, found.wrong, found.wrong),)
    assert len(found.channel_groups) == len(found.rows) == 1
    assert f"at bytes {line * 64:#x}-{line * 64 + 63:#x}" in str(found)


def test_channels_of_one_group_and_the_worst_element() -> None:
    reference = outputs((3, 40, 4, 4))
    actual = reference.copy()
    actual[1, 32:40] += 1
    actual[1, 37, 2, 3] += 5
    found = locate(reference, actual, 0.5, INT8)
    assert found is not None
    assert found.worst == (1, 37, 2, 3)
    assert found.samples == (Part(1, 1, 128, 640),)
    assert found.channel_groups == (Part(32, 39, 128, 384),)
    assert found.rows == (Part(0, 3, 128, 1920),)
    assert "channels 32-39 (128 of 384)" in str(found)


def test_rows_are_joined_and_padding_is_counted() -> None:
    """Rows 3 to 5 of a width of 20, padded to 32 in memory."""
    layout = MemoryLayout(16, 1, row_pixels=32)
    reference = outputs((1, 16, 8, 20))
    actual = reference.copy()
    actual[0, :, 3:6] += 1
    found = locate(reference, actual, 0.5, layout)
    assert found is not None
    assert [(part.first, part.last) for part in found.rows] == [(3, 5)]
    assert [(part.first * 64, (part.last + 1) * 64) for part in found.lines] == [
        (3 * 32 * 16, 3 * 32 * 16 + 320),
        (4 * 32 * 16, 4 * 32 * 16 + 320),
        (5 * 32 * 16, 5 * 32 * 16 + 320),
    ]
    assert "rows 3-5 (all)" in str(found)


def test_scores_and_what_is_no_number() -> None:
    reference = outputs((4, 10))
    actual = reference.copy()
    actual[2, 7] = np.nan
    found = locate(reference, actual, 1e9, MemoryLayout(16, 4))
    assert found is not None
    assert (found.wrong, found.worst, found.worst_difference) == (1, (2, 7, 0, 0), np.inf)
    assert found.rows == (Part(0, 0, 1, 40),)


def test_long_lists_are_cut() -> None:
    reference = outputs((1, 16, 64, 1))
    actual = reference.copy()
    actual[0, :, ::2] += 1
    assert "and 24 more" in str(locate(reference, actual, 0.5, INT8))


def test_nothing_to_compare_is_our_fault() -> None:
    for one, other in [((1, 2), (1, 3)), ((0, 2), (0, 2))]:
        with pytest.raises(HarnessError, match="nothing to locate"):
            locate(np.zeros(one), np.zeros(other), 0.1, INT8)


def test_a_failing_comparison_is_located_output_by_output() -> None:
    right, wrong = outputs((2, 16, 4, 4)), outputs((2, 32, 4, 4))
    actual = wrong.copy()
    actual[1, 16:] += 3
    limits = Tolerance(0.999, 30.0, 0.1, 0.01)
    texts = locate_violations([right, wrong], [right, actual], [limits, limits], [INT8, INT8])
    assert len(texts) == 1
    assert texts[0].startswith("output 1: 256 of 1024 elements differ by more than 0.1, most (3) at")
    assert "samples 1 (256 of 512); channels 16-31 (256 of 512); rows 0-3" in texts[0]
    assert locate_violations([right], [right], [limits], [INT8]) == []


def test_where_no_element_is_beyond_its_limit_the_largest_errors_are_located() -> None:
    """Only the bias is broken: every element is off by a little, one channel by more."""
    reference = outputs((1, 16, 4, 4))
    actual = reference + np.float32(0.02)
    actual[0, 3] += np.float32(0.05)
    (text,) = locate_violations([reference], [actual], [Tolerance(0.9, 10.0, 0.1, 0.01)], [INT8])
    assert text.startswith("output 0: 16 of 256 elements differ by more than 0.035")

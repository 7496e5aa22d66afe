"""Masks and patterns against references that look at one group at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from pytest_rknpu.errors import ModelError
from pytest_rknpu.sparsity import MODES, Axis, Kind, Mode, mask, mask_along, prune, sparsity_of

Floats = NDArray[np.float32]

# Few values, so that ties and zeros are common.
VALUES = st.sampled_from([0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0])
SIDES = st.integers(1, 11)
SHAPES = st.one_of(
    st.tuples(SIDES, SIDES),
    st.tuples(SIDES, SIDES, st.integers(1, 3)),
    st.tuples(SIDES, SIDES, st.integers(1, 3), st.integers(1, 3)),
)


@st.composite
def weights(draw: st.DrawFn) -> Floats:
    return draw(hnp.arrays(np.float32, draw(SHAPES), elements=VALUES))


def places(array: Floats) -> list[tuple[int, ...]]:
    """Every place of the kernel."""
    return list(itertools.product(*map(range, array.shape[2:])))


def two_largest(magnitudes: list[float]) -> set[int]:
    """Of up to four, the positions of the two largest; of equal ones the first."""
    return set(sorted(range(len(magnitudes)), key=lambda i: (-magnitudes[i], i))[:2])


def naive_four_two(array: Floats, axis: Axis) -> NDArray[np.bool_]:
    kept = np.zeros(array.shape, bool)
    other = 1 - axis.value
    for place in places(array):
        for line in range(array.shape[other]):
            for start in range(0, array.shape[axis.value], 4):
                run = range(start, min(start + 4, array.shape[axis.value]))
                spots = [((line, i) if axis is Axis.INPUT else (i, line)) + place for i in run]
                for chosen in two_largest([abs(float(array[spot])) for spot in spots]):
                    kept[spots[chosen]] = True
    return kept


def naive_grid(array: Floats, mode: Mode) -> NDArray[np.bool_]:
    kept = np.zeros(array.shape, bool)
    for place in places(array):
        for top, left in itertools.product(range(0, array.shape[0], 4), range(0, array.shape[1], 4)):
            rows = list(range(top, min(top + 4, array.shape[0])))
            columns = list(range(left, min(left + 4, array.shape[1])))

            def size(r: list[int], c: list[int], place: tuple[int, ...] = place) -> float:
                return sum(abs(float(array[(i, j, *place)])) for i in r for j in c)

            if mode is Mode.INPUT_THEN_OUTPUT:
                columns = [columns[i] for i in two_largest([size(rows, [c]) for c in columns])]
                rows = [rows[i] for i in two_largest([size([r], columns) for r in rows])]
            else:
                rows = [rows[i] for i in two_largest([size([r], columns) for r in rows])]
                columns = [columns[i] for i in two_largest([size(rows, [c]) for c in columns])]
            for spot in itertools.product(rows, columns):
                kept[(*spot, *place)] = True
    return kept


@settings(deadline=None)
@given(weights())
def test_four_two_is_the_naive_one(array: Floats) -> None:
    assert np.array_equal(mask(array, Mode.INPUT), naive_four_two(array, Axis.INPUT))
    assert np.array_equal(mask(array, Mode.OUTPUT), naive_four_two(array, Axis.OUTPUT))


@settings(deadline=None)
@given(weights(), st.sampled_from([Mode.INPUT_THEN_OUTPUT, Mode.OUTPUT_THEN_INPUT]))
def test_grids_are_the_naive_ones(array: Floats, mode: Mode) -> None:
    assert np.array_equal(mask(array, mode), naive_grid(array, mode))


@settings(deadline=None)
@given(weights(), st.sampled_from(Mode))
def test_what_stays_keeps_its_value_and_pruning_twice_changes_nothing(array: Floats, mode: Mode) -> None:
    pruned = prune(array, mode)
    kept = mask(array, mode)
    assert pruned.dtype == array.dtype
    assert np.array_equal(pruned[kept], array[kept])
    assert not pruned[~kept].any()
    assert np.array_equal(prune(pruned, mode), pruned)


@settings(deadline=None)
@given(weights(), st.sampled_from(Mode))
def test_pruned_weights_hold_the_pattern_of_their_mode(array: Floats, mode: Mode) -> None:
    """Where an axis has more than two channels; else nothing had to go along it."""
    held = sparsity_of(prune(array, mode)).kinds
    rows, columns = (size > 2 for size in array.shape[:2])
    if mode is not Mode.OUTPUT:
        assert (Kind.INPUT in held) == columns
    if mode is not Mode.INPUT:
        assert (Kind.OUTPUT in held) == rows
    if MODES[mode].kind is Kind.GRID:
        assert (Kind.GRID in held) == (rows and columns)


def naive_patterns(array: Floats) -> set[Kind]:
    """By counting, group by group."""
    kinds = {Kind.INPUT, Kind.OUTPUT, Kind.GRID}
    for place in places(array):
        plane = array[(slice(None), slice(None), *place)] != 0
        for top in range(0, plane.shape[0], 4):
            for left in range(0, plane.shape[1], 4):
                block = plane[top : top + 4, left : left + 4]
                if any(row.sum() > 2 for row in block):
                    kinds.discard(Kind.INPUT)
                if any(column.sum() > 2 for column in block.T):
                    kinds.discard(Kind.OUTPUT)
                if block.any(axis=1).sum() > 2 or block.any(axis=0).sum() > 2:
                    kinds.discard(Kind.GRID)
    rows, columns = (size > 2 for size in array.shape[:2])
    return (
        kinds
        - (set() if rows else {Kind.OUTPUT, Kind.GRID})
        - (set() if columns else {Kind.INPUT, Kind.GRID})
    )


@settings(deadline=None)
@given(weights(), st.sampled_from([*Mode, None]), st.integers(0, 2**32 - 1))
def test_patterns_are_those_that_counting_finds(array: Floats, mode: Mode | None, seed: int) -> None:
    """Also one weight away from a pattern."""
    array = array if mode is None else prune(array, mode)
    assert sparsity_of(array).kinds == naive_patterns(array)
    assert sparsity_of(array).zeros == pytest.approx((array == 0).mean())
    array.flat[np.random.default_rng(seed).integers(array.size)] = 7.0
    assert sparsity_of(array).kinds == naive_patterns(array)


def test_a_dense_tensor_holds_nothing() -> None:
    pattern = sparsity_of(np.ones((64, 64, 3, 3), np.float32))
    assert (pattern.kind, pattern.kinds, pattern.zeros) == (Kind.NONE, frozenset(), 0.0)


@pytest.mark.parametrize("mode", Mode)
def test_one_more_weight_breaks_a_pattern(mode: Mode) -> None:
    """All or nothing, as the compiler has it."""
    pruned = prune(np.random.default_rng(1).normal(size=(64, 64, 3, 3)).astype(np.float32), mode)
    assert sparsity_of(pruned).kind is MODES[mode].kind
    assert sparsity_of(pruned).zeros == MODES[mode].zeros
    pruned[60:, 60:, 2, 2] = 1.0
    assert sparsity_of(pruned).kind is Kind.NONE


def test_half_of_the_weights_in_the_wrong_places_is_no_pattern() -> None:
    """Three in one group, one in the next."""
    weights = np.ones((8, 8), np.float32)
    weights[:, [3, 5, 6, 7]] = 0
    weights[1::2] = 0
    pattern = sparsity_of(weights)
    assert pattern.zeros == 0.75
    assert Kind.INPUT not in pattern.kinds
    assert Kind.GRID not in pattern.kinds


def test_four_two_along_both_axes_is_no_grid() -> None:
    """The two diagonals of a block: two in each row and column, but in four rows and columns."""
    block = (np.eye(4) + np.eye(4)[::-1]).astype(np.float32)
    pattern = sparsity_of(np.tile(block, (4, 4)))
    assert pattern.kinds == {Kind.INPUT, Kind.OUTPUT}
    assert pattern.kind is Kind.INPUT


def test_grids_may_differ_from_block_to_block_and_place_to_place() -> None:
    weights = np.zeros((8, 8, 1, 2), np.float32)
    weights[np.ix_([0, 3], [1, 2], [0], [0])] = 1
    weights[np.ix_([5, 6], [4, 7], [0], [1])] = 1
    assert sparsity_of(weights).kind is Kind.GRID


def test_int8_weights_are_judged_too() -> None:
    pruned = prune(np.random.default_rng(2).normal(size=(32, 32)).astype(np.float32), Mode.INPUT)
    assert sparsity_of(np.round(pruned * 40).astype(np.int8)).kind is Kind.INPUT


def test_one_axis_of_a_16_to_4_mode_alone() -> None:
    array = np.random.default_rng(3).normal(size=(16, 16)).astype(np.float32)
    assert np.array_equal(mask_along(array, (Axis.OUTPUT,)), mask(array, Mode.OUTPUT))
    assert mask_along(array, ()).all()


def test_the_order_of_the_axes_matters() -> None:
    """A block whose largest weight stands in a weak column: mode 2 drops it, mode 3 keeps it."""
    block = np.array([[0, 0, 0, 5], [2, 2, 0, 0], [2, 2, 0, 0], [2, 2, 0, 0]], np.float32)
    assert not mask(block, Mode.INPUT_THEN_OUTPUT)[0, 3]
    assert mask(block, Mode.OUTPUT_THEN_INPUT)[0, 3]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(4, np.float32), "shape"),
        (np.zeros((0, 4), np.float32), "shape"),
        (np.zeros((4, 4), np.int8), "before quantisation"),
        (np.full((4, 4), np.nan, np.float32), "16 of 16 weights are not finite"),
    ],
)
def test_unfit_weights_are_refused(array: NDArray[np.generic], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        mask(array, Mode.INPUT)


def test_a_vector_has_no_pattern() -> None:
    with pytest.raises(ModelError, match="shape"):
        sparsity_of(np.zeros(4))

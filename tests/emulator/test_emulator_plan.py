"""The memory plan: nothing that is alive at once overlaps, whatever the model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.emulator.plan import ALIGNMENT, Live, end_of, place


@st.composite
def lives(draw: st.DrawFn) -> Live:
    first = draw(st.integers(0, 20))
    return Live(draw(st.integers(1, 5000)), first, draw(st.integers(first, 24)))


@given(st.lists(lives(), max_size=25))
def test_no_two_live_tensors_share_a_byte(tensors: list[Live]) -> None:
    offsets = place(tensors)
    for step in range(25):
        owner: dict[int, int] = {}
        for index, (tensor, offset) in enumerate(zip(tensors, offsets, strict=True)):
            if not tensor.first <= step <= tensor.last:
                continue
            assert offset % ALIGNMENT == 0
            assert offset + tensor.size <= end_of(tensors, offsets)
            for line in range(offset // ALIGNMENT, (offset + tensor.size - 1) // ALIGNMENT + 1):
                assert owner.setdefault(line, index) == index


@given(st.lists(lives(), min_size=1, max_size=25))
def test_the_buffer_is_no_larger_than_all_tensors_and_no_smaller_than_the_fullest_step(
    tensors: list[Live],
) -> None:
    needed = end_of(tensors, place(tensors))
    assert needed <= sum(-(-tensor.size // ALIGNMENT) * ALIGNMENT for tensor in tensors)
    assert needed >= max(
        sum(tensor.size for tensor in tensors if tensor.first <= step <= tensor.last) for step in range(25)
    )


def test_a_chain_takes_turns_in_two_places() -> None:
    chain = [Live(64, step, step + 1) for step in range(10)]
    assert end_of(chain, place(chain)) == 128

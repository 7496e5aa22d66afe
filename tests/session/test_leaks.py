"""Growth between looks at a board: what the rounds are to blame for, and what others may have done."""

from __future__ import annotations

import pytest

from pytest_rknpu.session.leaks import Growth, growth_of


def snapshots(resource: str, *counts: int | None) -> list[dict[str, int | None]]:
    return [{resource: count} for count in counts]


def test_one_descriptor_more_is_a_leak() -> None:
    assert growth_of("descriptors", snapshots("descriptors", 9, 9, 9, 10), 60) == Growth(1, True)
    assert growth_of("descriptors", snapshots("descriptors", 9, 10, 9, 9), 60) == Growth(0, False)


def test_mappings_leak_with_every_round() -> None:
    assert growth_of("mappings", snapshots("mappings", 90, 91, 91, 91), 60) == Growth(1, False)
    assert growth_of("mappings", snapshots("mappings", 90, 110, 130, 150), 60) == Growth(60, True)


@pytest.mark.parametrize("noise", [(0, 8_000_000, 8_000_000, 8_000_000), (0, 8_000_000, 0, 8_000_000)])
def test_dma_bytes_of_somebody_else_are_no_leak(noise: tuple[int, ...]) -> None:
    growth = growth_of("dma_bytes", snapshots("dma_bytes", *noise), 60)
    assert growth == Growth(8_000_000, False)


def test_dma_bytes_that_grow_in_every_share_of_the_rounds_are_a_leak() -> None:
    counts = (0, 20 * 4096, 8_000_000, 8_000_000 + 20 * 4096)
    growth = growth_of("dma_bytes", snapshots("dma_bytes", *counts), 60)
    assert growth is not None
    assert growth.leaked


def test_what_the_board_does_not_tell_is_not_judged() -> None:
    assert growth_of("dma_bytes", snapshots("dma_bytes", None, None), 60) is None

"""Each process has one vote on a budget; a t test counts them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from pytest_rknpu.measure.processes import Votes, alpha_to_pass, votes


def test_votes_are_counted_by_process() -> None:
    found = votes([np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.5])], 2.0)
    assert found == Votes(above=(1, 1), runs=(3, 2))


@pytest.mark.parametrize("above", [(90, 95, 99, 80, 101), (0, 3, 0, 0, 1), (200, 0, 200, 0, 5)])
@pytest.mark.parametrize("allowed", [0.5, 0.05, 0.01])
def test_tails_are_those_of_a_t_test(above: tuple[int, ...], allowed: float) -> None:
    shares = np.array(above) / 200
    low, high = Votes(above, (200,) * 5).tails(allowed)
    assert low == pytest.approx(float(ttest_1samp(shares, allowed, alternative="less").pvalue))
    assert high == pytest.approx(float(ttest_1samp(shares, allowed, alternative="greater").pvalue))


@pytest.mark.parametrize(
    ("share", "tails"), [(0, (0.0, 1.0)), (10, (0.0, 1.0)), (20, (1.0, 1.0)), (200, (1.0, 0.0))]
)
def test_processes_of_one_mind(share: int, tails: tuple[float, float]) -> None:
    assert Votes((share,) * 3, (200,) * 3).tails(0.1) == tails


def test_a_single_process_has_nothing_to_object() -> None:
    assert Votes((100,), (200,)).tails(0.01) == (0.0, 0.0)


def test_a_pass_in_the_tail_takes_more() -> None:
    assert [alpha_to_pass(quantile, 0.04) for quantile in (0.5, 0.9, 0.99)] == [0.04, 0.01, 0.01]

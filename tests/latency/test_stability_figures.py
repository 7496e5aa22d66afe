"""Samples that may not be judged are found, each for its reason; sound ones are left alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu.measure import instabilities
from pytest_rknpu.measure.modes import two_modes
from pytest_rknpu.measure.stability import autocorrelation, drift, outliers, tail_clusters

Doubles = NDArray[np.float64]
Random = np.random.Generator
PROCESSES, RUNS = 5, 200


def steady(random: Random, runs: int = RUNS) -> Doubles:
    return 10.0 * np.exp(0.02 * random.standard_normal(runs))


def correlated(random: Random) -> Doubles:
    values = np.empty(RUNS)
    values[0] = random.standard_normal()
    for run in range(1, RUNS):
        values[run] = 0.6 * values[run - 1] + 0.8 * random.standard_normal()
    return 10.0 * np.exp(0.02 * values)


def alternating(random: Random) -> Doubles:
    """old#242: 33.5 and 40 ms at a fixed clock, one after the other."""
    return np.where(np.arange(RUNS) % 2, 33.5, 40.0) * np.exp(0.003 * random.standard_normal(RUNS))


def two_speeds(random: Random) -> Doubles:
    return np.where(random.random(RUNS) < 0.3, 40.0, 33.5) * np.exp(0.003 * random.standard_normal(RUNS))


def drifting(random: Random) -> Doubles:
    return steady(random) * np.linspace(1.0, 1.04, RUNS)


def stalls(random: Random) -> Doubles:
    return steady(random) * np.where(random.random(RUNS) < 0.02, 5.0, 1.0)


def slow_spell(random: Random) -> Doubles:
    """Four of 200 runs are slow, one after the other: too few for a correlation of all."""
    samples = steady(random)
    start = int(random.integers(RUNS - 4))
    samples[start : start + 4] *= 1.3
    return samples


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (correlated, "successive runs depend on each other"),
        (alternating, "two modes: around 33"),
        (two_speeds, "two modes: around 33"),
        (drifting, "drift: the median of the last quarter is +"),
        (stalls, "runs are outliers"),
        (slow_spell, "slow runs come in a row"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_each_disturbance_is_found(make: Callable[[Random], Doubles], words: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    reasons = instabilities([make(random) for _ in range(PROCESSES)])
    assert any(words in reason for reason in reasons), reasons


@pytest.mark.parametrize("seed", range(5))
def test_processes_that_differ_are_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    processes = [steady(random) for _ in range(PROCESSES)]
    processes[3] = processes[3] * 1.03
    assert any("processes differ: their medians" in reason for reason in instabilities(processes))
    processes = [steady(random) for _ in range(PROCESSES)]
    processes[1][::12] *= 1.2  # one process was disturbed now and then
    assert any("runs above p95" in reason for reason in instabilities(processes))


SOUND: dict[str, Callable[[Random], Doubles]] = {
    "normal": lambda random: 10 + 0.1 * random.standard_normal(RUNS),
    "log-normal": lambda random: 10 * np.exp(0.1 * random.standard_normal(RUNS)),
    "skewed": lambda random: 10 * np.exp(0.5 * random.standard_normal(RUNS)),
    "exponential": lambda random: 5 + random.exponential(1.0, RUNS),
    "uniform": lambda random: 10 + random.random(RUNS),
    "heavy tail": lambda random: 10 * np.exp(0.01 * random.standard_t(3, RUNS)),
}


@pytest.mark.parametrize("shape", SOUND)
def test_sound_samples_are_seldom_refused(shape: str) -> None:
    """At most 4 of 100 sets of 1,000, whatever their shape. docs/latency.md has the figure over more sets."""
    random = np.random.default_rng(5)
    refused = [
        reasons for _ in range(100) if (reasons := instabilities([SOUND[shape](random) for _ in range(5)]))
    ]
    assert len(refused) <= 4, refused


def test_autocorrelation_is_that_of_ranks() -> None:
    """One outlier of any size leaves it as it is."""
    random = np.random.default_rng(2)
    processes = [correlated(random) for _ in range(PROCESSES)]
    before = autocorrelation(processes)
    assert before == pytest.approx(0.58, abs=0.06)  # of ranks of a normal process with 0.6
    processes[0][100] = 1e6
    assert autocorrelation(processes) == pytest.approx(before, abs=0.02)
    assert autocorrelation([np.ones(10)]) == 0.0
    assert autocorrelation([np.array([1.0])]) == 0.0


def test_clusters_are_counted_within_processes() -> None:
    flat = np.linspace(1.0, 1.01, 50)
    first, second = flat.copy(), flat.copy()
    first[[10, 11, 12, 49]] = 5.0
    second[0] = 5.0  # follows the last run of another process: no neighbour
    pairs, expected = tail_clusters([first, second], 0.95)
    assert pairs == 2
    assert expected == pytest.approx(4 * 3 / 50)


def test_drift_is_told_with_its_sign() -> None:
    shift, probability = drift([np.linspace(1.0, 0.9, 100)])
    assert shift == pytest.approx(-0.077, abs=0.01)
    assert probability < 1e-6
    assert drift([np.array([1.0, 2.0])]) == (0.0, 1.0)


def test_outliers_lie_far_off_on_either_side() -> None:
    samples = np.concatenate([np.linspace(9.9, 10.1, 100), [25.0, 3.0]])
    assert sorted(outliers(samples)) == [3.0, 25.0]
    wide = 10 * np.exp(np.linspace(-1.5, 1.5, 101))  # spread over a factor of 20: none is far off
    assert outliers(wide).size == 0


def test_one_outlier_is_granted() -> None:
    random = np.random.default_rng(3)
    samples = steady(random, 100)
    samples[50] = 100.0
    assert instabilities([samples]) == []
    samples[[20, 70]] = 100.0
    assert any("outliers" in reason for reason in instabilities([samples]))
    assert instabilities([samples], outlier_share=1.0) == []


def test_modes_are_located() -> None:
    random = np.random.default_rng(4)
    found = two_modes(two_speeds(random))
    assert found is not None
    assert (found.lower, found.upper) == (pytest.approx(33.5, rel=0.01), pytest.approx(40.0, rel=0.01))
    assert found.upper_share == pytest.approx(0.3, abs=0.1)


def test_modes_of_no_consequence_are_none() -> None:
    """A clock that ticks in microseconds, and two speeds that are one percent apart."""
    random = np.random.default_rng(4)
    ticks = 1000.0 + random.integers(0, 3, 500)
    close = np.where(random.random(500) < 0.5, 10.0, 10.1) * np.exp(1e-4 * random.standard_normal(500))
    for samples in (ticks, close, np.full(500, 7.0), close[:30]):
        assert two_modes(samples) is None


@pytest.mark.parametrize("wrong", [[], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [float("inf")]])
def test_what_are_no_samples(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="positive numbers"):
        instabilities([np.array([1.0, 2.0]), np.array(wrong)])

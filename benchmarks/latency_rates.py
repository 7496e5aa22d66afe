"""Prints how often latency verdicts are wrong, and how often they see a shift: simulated, seeded.

    python benchmarks/latency_rates.py [--sets 2000] [--seed 1]

Each set is what a measurement gives: 5 processes of 200 runs, log-normal, correlated from run to run where
said. The budget is the true quantile, so that every pass and every fail is a false one (for a fail: the
budget is just kept). The figures of docs/latency.md come from here. Nothing is asserted;
tests/latency/test_latency_simulation.py asserts, on smaller numbers.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pytest_rknpu.measure import Rule, chances, decide, instabilities

PROCESSES, RUNS = 5, 200
QUANTILES = (0.5, 0.95, 0.99)
SPREAD = 0.02
Doubles = NDArray[np.float64]


def processes(random: np.random.Generator, correlation: float) -> list[Doubles]:
    """Log-normal runs with median 1; their logarithms are an AR(1) process with that coefficient."""
    noise = random.standard_normal((PROCESSES, RUNS))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0]
    scale = math.sqrt(1 - correlation**2)
    for run in range(1, RUNS):
        values[:, run] = correlation * values[:, run - 1] + scale * noise[:, run]
    return list(np.exp(SPREAD * values))


def print_rates(sets: int, seed: int) -> None:
    """False verdicts at the boundary, by correlation: of all sets, and of those that may be judged."""
    print(
        f"false verdicts in %, budget = true quantile, {PROCESSES} x {RUNS} runs, {sets} sets each, alpha 5 %"
    )
    print("corr.  refused   " + "   ".join(f"p{100 * q:g} pass/fail  (unchecked)" for q in QUANTILES))
    budgets = [math.exp(SPREAD * float(norm.ppf(quantile))) for quantile in QUANTILES]
    for correlation in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8):
        random = np.random.default_rng([seed, int(100 * correlation)])
        refused = 0
        wrong = np.zeros((len(QUANTILES), 4))
        for _ in range(sets):
            runs = processes(random, correlation)
            unfit = bool(instabilities(runs, QUANTILES))
            refused += unfit
            pooled = np.concatenate(runs)
            for number, (quantile, budget) in enumerate(zip(QUANTILES, budgets, strict=True)):
                decision = decide(pooled.size, int((pooled > budget).sum()), quantile, Rule().per_look)
                wrong[number] += [
                    decision == "pass" and not unfit,
                    decision == "fail" and not unfit,
                    decision == "pass",
                    decision == "fail",
                ]
        cells = [f"{a:5.2f} /{b:5.2f}  ({c:5.2f} /{d:5.2f})" for a, b, c, d in (100 * wrong / sets).tolist()]
        print(f"{correlation:4.2f}   {100 * refused / sets:6.1f}    " + "   ".join(cells))


def print_shapes(sets: int, seed: int) -> None:
    """How often sound samples of other shapes are refused."""
    shapes = {
        "normal 1 %": lambda r: 1 + 0.01 * r.standard_normal(RUNS),
        "log-normal 10 %": lambda r: np.exp(0.1 * r.standard_normal(RUNS)),
        "log-normal 50 %": lambda r: np.exp(0.5 * r.standard_normal(RUNS)),
        "exponential": lambda r: 5 + r.exponential(1.0, RUNS),
        "uniform": lambda r: 10 + r.random(RUNS),
        "Student t, 3": lambda r: np.exp(0.01 * r.standard_t(3, RUNS)),
    }
    print(f"\nsound samples that are refused, in %, {sets} sets each")
    for name, make in shapes.items():
        random = np.random.default_rng([seed, len(name)])
        refused = sum(bool(instabilities([make(random) for _ in range(PROCESSES)])) for _ in range(sets))
        print(f"{name:16} {100 * refused / sets:5.2f}")


def print_power() -> None:
    """Exact: the chance to see that a board is 3 % slower, or faster, than its budget."""
    print(
        "\nchance in % of a fail at +3 % and of a pass at -3 %, 1000 runs, alpha 5 %, by spread of the runs"
    )
    print("spread   " + "   ".join(f"p{100 * q:g} fail / pass" for q in QUANTILES))
    for spread in (0.005, 0.01, 0.02, 0.05, 0.1):
        cells = []
        for quantile in QUANTILES:
            at = float(norm.ppf(quantile))
            slower, faster = (float(norm.sf(at - math.log(shift) / spread)) for shift in (1.03, 0.97))
            fails = chances(1000, quantile, slower, Rule().per_look)[1]
            passes = chances(1000, quantile, faster, Rule().per_look)[0]
            cells.append(f"{100 * fails:6.1f} / {100 * passes:5.1f}")
        print(f"{100 * spread:4.1f} %   " + "   ".join(cells))


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print_rates(arguments.sets, arguments.seed)
    print_shapes(arguments.sets, arguments.seed)
    print_power()


if __name__ == "__main__":
    main()

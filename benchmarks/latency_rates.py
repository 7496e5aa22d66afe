"""Prints how often latency verdicts are wrong, and how often they see a shift: simulated, seeded.

    python benchmarks/latency_rates.py [--sets 2000] [--seed 1]

Each set is what a measurement gives: 5 processes of 200 runs, log-normal, alike where said: from run to run,
by a slow swing, or because processes differ. The budget is the true quantile, so that every pass and every
fail is a false one (for a fail: the budget is just kept). The figures of docs/latency.md come from here.
Nothing is asserted; tests/latency/test_latency_simulation.py asserts, on smaller numbers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pytest_rknpu.measure import Limit, Rule, decide, instabilities, judge_limit

PROCESSES, RUNS = 5, 200
QUANTILES = (0.5, 0.95, 0.99)
SPREAD = 0.02
NARROW = 0.003
"""Of runs that are alike within a process: where the spread is small, medians differ by less than 1 %."""
Doubles = NDArray[np.float64]
Random = np.random.Generator
Make = Callable[[Random], Doubles]


def correlated(random: Random, correlation: float) -> Doubles:
    """Standard normal runs (processes, runs) that are an AR(1) process with that coefficient."""
    noise = random.standard_normal((PROCESSES, RUNS))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0]
    scale = math.sqrt(1 - correlation**2)
    for run in range(1, RUNS):
        values[:, run] = correlation * values[:, run - 1] + scale * noise[:, run]
    return values


def swaying(random: Random, share: float, correlation: float) -> Doubles:
    """A slow swing makes up that share of the variance."""
    noise = random.standard_normal((PROCESSES, RUNS))
    return math.sqrt(share) * correlated(random, correlation) + math.sqrt(1 - share) * noise


def in_pairs(random: Random, correlation: float) -> Doubles:
    """Each run depends on the last but one."""
    both = [correlated(random, correlation) for _ in "ab"]
    return np.stack(both, axis=2).reshape(PROCESSES, -1)[:, :RUNS]


def differing(random: Random, share: float) -> Doubles:
    """Processes differ by that share of the spread of their runs."""
    own = share * random.standard_normal((PROCESSES, 1))
    return (random.standard_normal((PROCESSES, RUNS)) + own) / math.sqrt(1 + share**2)


def print_rates(title: str, makes: Mapping[str, Make], spread: float, sets: int, seed: int) -> None:
    """False verdicts at the boundary: sets refused, verdicts, and in brackets those of the binomial alone."""
    print(f"\nfalse verdicts in %, budget = true quantile, {PROCESSES} x {RUNS} runs, {sets} sets, alpha 5 %")
    print(f"{title:26} refused   " + "   ".join(f"p{100 * q:g} pass/fail  (binomial)" for q in QUANTILES))
    limits = [Limit(q, math.exp(spread * float(norm.ppf(q)))) for q in QUANTILES]
    alpha = Rule().per_look
    for number, (name, make) in enumerate(makes.items()):
        random = np.random.default_rng([seed, number])
        refused = 0
        wrong = np.zeros((len(QUANTILES), 4))
        for _ in range(sets):
            runs = list(np.exp(spread * make(random)))
            unfit = bool(instabilities(runs, QUANTILES))
            refused += unfit
            for place, limit in enumerate(limits):
                verdict = judge_limit(runs, limit, alpha, alpha)
                alone = decide(verdict.count, verdict.above, limit.quantile, alpha)
                judged = "inconclusive" if unfit else verdict.decision
                wrong[place] += [judged == "pass", judged == "fail", alone == "pass", alone == "fail"]
        cells = [f"{a:5.1f} /{b:5.1f}  ({c:5.1f} /{d:5.1f})" for a, b, c, d in (100 * wrong / sets).tolist()]
        print(f"{name:26} {100 * refused / sets:6.1f}    " + "   ".join(cells), flush=True)


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


def print_power(sets: int, seed: int) -> None:
    """The chance to see that a board is 3 % slower, or faster, than its budget."""
    print("\nchance in % of a fail at +3 % and of a pass at -3 %, 5 x 200 runs, alpha 5 %, by their spread")
    print("spread   " + "   ".join(f"p{100 * q:g} fail / pass" for q in QUANTILES))
    alpha = Rule().per_look
    for spread in (0.005, 0.01, 0.02, 0.05, 0.1):
        random = np.random.default_rng([seed, int(1000 * spread)])
        seen = np.zeros((len(QUANTILES), 2))
        for _ in range(sets):
            noise = random.standard_normal((PROCESSES, RUNS))
            for column, (shift, wanted) in enumerate(((1.03, "fail"), (0.97, "pass"))):
                runs = list(shift * np.exp(spread * noise))
                for place, quantile in enumerate(QUANTILES):
                    limit = Limit(quantile, math.exp(spread * float(norm.ppf(quantile))))
                    seen[place, column] += judge_limit(runs, limit, alpha, alpha).decision == wanted
        print(f"{100 * spread:4.1f} %   " + "   ".join(f"{a:6.1f} / {b:5.1f}" for a, b in 100 * seen / sets))


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sets, seed = arguments.sets, arguments.seed
    rhos = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8)
    by_correlation = {f"{rho:4.2f}": partial(correlated, correlation=rho) for rho in rhos}
    print_rates("correlation of runs", by_correlation, SPREAD, sets, seed)
    alike: dict[str, Make] = {
        f"processes differ by {share:g}": partial(differing, share=share) for share in (0.1, 0.2, 0.3, 0.5, 1)
    }
    alike |= {
        f"swing {share:.0%}, {rho:g}": partial(swaying, share=share, correlation=rho)
        for share, rho in ((0.05, 0.98), (0.09, 0.98), (0.09, 0.999), (0.15, 0.999))
    }
    alike["by the last but one, 0.6"] = partial(in_pairs, correlation=0.6)
    print_rates("alike within a process", alike, NARROW, sets, seed)
    print_shapes(sets, seed)
    print_power(min(sets, 500), seed)


if __name__ == "__main__":
    main()

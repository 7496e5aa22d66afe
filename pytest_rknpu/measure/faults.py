"""What n clean iterations prove of a fault that comes at random.

If each iteration fails with probability p, n of them are all clean with probability (1 - p)^n. The largest p
for which that is still at least 1 - c is the bound that a clean run excludes at confidence c: p = 1 - (1 -
c)^(1/n).
"""

from __future__ import annotations

import math

#: Below it n and n + 1 iterations can no longer be told apart in double precision; nobody runs that many.
SMALLEST_BOUND = 1e-9


def fault_rate_bound(n: int, confidence: float = 0.95) -> float:
    """The fault rate (share of iterations) above which ``n`` clean iterations speak, at ``confidence``.

    No iteration excludes nothing: the bound is 1. ValueError: n below 0, confidence outside (0, 1).
    """
    _check_share("confidence", confidence)
    if n < 0:
        raise ValueError(f"n is a number of iterations, not {n}")
    return 1.0 if n == 0 else -math.expm1(math.log1p(-confidence) / n)


def iterations_for_bound(bound: float, confidence: float = 0.95) -> int:
    """The fewest clean iterations whose ``fault_rate_bound`` is no more than ``bound``.

    ValueError: bound or confidence outside (0, 1), or a bound below 1e-9.
    """
    _check_share("bound", bound)
    if bound < SMALLEST_BOUND:
        raise ValueError(f"bound {bound} is below {SMALLEST_BOUND}: no run is that long")
    _check_share("confidence", confidence)
    n = max(1, math.ceil(math.log1p(-confidence) / math.log1p(-bound)))
    # The quotient is rounded; the neighbours settle it.
    while fault_rate_bound(n, confidence) > bound:
        n += 1
    while n > 1 and fault_rate_bound(n - 1, confidence) <= bound:
        n -= 1
    return n


def _check_share(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} lies between 0 and 1 (both excluded), not at {value}")

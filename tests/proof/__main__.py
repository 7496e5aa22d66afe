"""``python -m tests.proof``: seed every fault, count clean runs, write kills.json and docs/proof.md."""

from __future__ import annotations

import argparse
import sys

from tests.proof import matrix
from tests.proof.catalogue import CATALOGUE
from tests.proof.clean import count_alarms
from tests.proof.document import PATH, document

_CLEAN_RUNS = 1000
_AT_ONCE = 200


def main() -> int:
    """Returns 1 where a fault survives or a clean run raises an alarm."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("--document", action="store_true", help="write docs/proof.md from kills.json alone")
    parser.add_argument(
        "--faults", nargs="*", metavar="NAME", help="only these, the others as stored; no clean runs"
    )
    parser.add_argument("--own-requirements", action="store_true", help="not all suites with each fault")
    parser.add_argument("--clean-runs", type=int, default=_CLEAN_RUNS, metavar="N")
    chosen = parser.parse_args()
    if not chosen.document:
        _compute(chosen.faults, chosen.clean_runs, only_named=chosen.own_requirements)
    kills, clean = matrix.stored(), matrix.clean_runs()
    PATH.write_text(document(kills, clean, all_suites=matrix.is_full()), encoding="utf-8")
    survivors = [
        f"{name} survives {id}"
        for name, seeded in CATALOGUE.items()
        for id in seeded.requirements
        if id not in kills.get(name, {})
    ]
    for line in survivors:
        print(line, file=sys.stderr)
    return 1 if survivors or clean["alarms"] else 0


def _compute(only: list[str] | None, clean_runs: int, *, only_named: bool) -> None:
    if only is not None:
        kills = {name: found for name, found in matrix.stored().items() if name in CATALOGUE}
        full = matrix.is_full()
        kills |= {name: matrix.compute(CATALOGUE[name], only_named=not full) for name in only}
        ordered = {name: kills[name] for name in CATALOGUE if name in kills}
        matrix.write(ordered, matrix.clean_runs(), all_suites=full)
        return
    kills = matrix.compute_all(lambda line: print(line, flush=True), only_named=only_named)
    runs, alarms = 0, 0
    while runs < clean_runs:
        count = min(_AT_ONCE, clean_runs - runs)
        passed, red = count_alarms(runs, count)
        runs, alarms = runs + passed, alarms + len(red)
        print(f"{runs} clean runs, {alarms} alarms", *red[:5], sep="\n", flush=True)
        if passed < count:
            raise SystemExit(f"{count - passed} boards did not run at all")
    matrix.write(kills, {"runs": runs, "alarms": alarms}, all_suites=not only_named)


if __name__ == "__main__":
    raise SystemExit(main())

"""What the end of a run says about its waivers: a waiver that does nothing any more must not stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

import pytest

from pytest_rknpu.farm.run import Run
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import Outcome
from pytest_rknpu.waivers import Standing, State, WaiversFile, standings

# Options after which some tests of a requirement may be missing, so that a pass of the others proves little.
_NARROWING = ("keyword", "markexpr", "rknpu_only", "deselect", "lf", "stepwise")


def run_standings(run: Run, results: Sequence[Result]) -> list[Standing]:
    """What became of each waiver of the run; empty where there is no waivers.toml."""
    file = run.waivers
    return standings(file.waivers, results, datetime.now(timezone.utc).date()) if file else []


def unexpected_passes(
    file: WaiversFile, found: Sequence[Standing], results: Sequence[Result]
) -> Iterator[Result]:
    """A result per board that passes what a waiver says is broken: not green until the waiver is gone."""
    for standing in found:
        for board in standing.passing if standing.state is State.UNEXPECTED_PASS else ():
            example = next(result for result in results if result.board == board)
            waiver = standing.waiver
            yield Result(
                requirement=(waiver.requirement,),
                nodeid=f"{file.path.name}::waiver_{standing.number}[{board}]",
                board=board,
                soc=example.soc,
                evidence=example.evidence,
                outcome=Outcome.INCONCLUSIVE,
                versions=example.versions,
                seed=example.seed,
                measurements=(),
                notes=(),
                message=f"unexpected pass: {file.path}, {standing.title}: the board passes "
                f"{waiver.requirement}; remove the waiver, or narrow it (versions, test) to what still fails",
                duration_s=0.0,
            )


def summary_lines(file: WaiversFile, found: Sequence[Standing]) -> Iterator[str]:
    """One line for each waiver that wants attention."""
    for standing in found:
        where = f"{file.path.name}, {standing.title}"
        if standing.state is State.EXPIRED:
            yield f"EXPIRED {where}: ended on {standing.waiver.expires}; look again, then renew or remove it"
        elif standing.state is State.UNEXPECTED_PASS:
            yield f"UNEXPECTED PASS {where}: on {', '.join(standing.passing)}; remove or narrow it"
        elif standing.state is State.UNUSED:
            yield f"unused {where}: nothing failed as it describes in this run"
        if standing.broad:
            yield f"broad {where}: covered {standing.kinds} different failures; narrow its message"


def narrowed(session: pytest.Session) -> bool:
    """Whether the run left out, or may have left out, tests of the requirements that it has run."""
    option = session.config.option
    stopped = bool(session.shouldstop or session.shouldfail)
    by_name = any("::" in str(argument) for argument in session.config.args)
    return stopped or by_name or any(getattr(option, name, None) for name in _NARROWING)

"""What to do next: said once at the end of a run, and not with each test that is concerned."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from pytest_rknpu.farm.run import Run
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import Outcome

# "...; install it with: COMMAND", and perhaps ", or ..." behind it.
_REMEDY = re.compile(r"; install it with: (?P<command>[^,;\n]+)(?:, (?P<other>[^\n]+))?")


def without_remedy(reason: str) -> str:
    """A reason without the command that would change it; what may be done instead stays, in brackets."""
    return _REMEDY.sub(lambda found: f" ({found['other']})" if found["other"] else "", reason)


def next_steps(results: Sequence[Result], run: Run, config: pytest.Config) -> list[str]:
    """A line for each thing that would get more out of the next run; none where all ran that could."""
    steps = [*_installs(results), *_probes(results, run, config)]
    return ["", "next:", *(f"  {step}" for step in steps)] if steps else []


def _installs(results: Sequence[Result]) -> Iterator[str]:
    skipped = [result for result in results if result.outcome is Outcome.SKIP]
    found = (_REMEDY.search(result.message) for result in skipped)
    for command, count in Counter(match["command"] for match in found if match).items():
        yield f"{command}    ({_tests(count)} skipped for want of it)"


def _probes(results: Sequence[Result], run: Run, config: pytest.Config) -> Iterator[str]:
    """What to ask about boards that did not get all their tests."""
    missed = Counter(result.ran_on or result.board for result in results if not result.tried)
    if run.boards_file is None or not missed:
        return
    known = {board.name for board in run.file.boards}
    for board, count in missed.items():
        if board in known:  # neither a pool nor a place of labgrid
            file = os.path.relpath(run.boards_file, config.invocation_params.dir)
            command = shlex.join(["rknpu", "probe", "--board", board, "--boards", file])
            yield f"{command}    ({_tests(count)} not tried)"


def _tests(count: int) -> str:
    return "1 test was" if count == 1 else f"{count} tests were"

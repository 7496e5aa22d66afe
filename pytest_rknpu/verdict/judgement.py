"""From the three phases of a test and the runtime's log to one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.verdict.outcome import Outcome
from pytest_rknpu.verdict.record import ItemRecord

LOG_REQUIREMENT = "VER-05"
_LINES_SHOWN = 5

# With these outcomes nothing worse is known of the board than what its runtime's log says.
_LOG_DECIDES = frozenset({Outcome.PASS, Outcome.SKIP, Outcome.INCONCLUSIVE})


@dataclass(frozen=True)
class Phase:
    """How ``when`` (setup, call or teardown) of a test went, and how long it took."""

    when: str
    outcome: Outcome
    message: str
    duration_s: float


_NOT_CALLED = Phase("call", Outcome.INCONCLUSIVE, "the test function was not called", 0.0)


@dataclass(frozen=True)
class Verdict:
    """What a test says in the end."""

    outcome: Outcome
    message: str
    requirements: tuple[str, ...]
    duration_s: float


def unexpected_log_error(record: ItemRecord, outcome: Outcome) -> ConformanceFailure | None:
    """The failure of a test during which the runtime logged errors, though all its calls may have returned 0.

    None where there were none, the test expects them, or ``outcome`` weighs more.
    """
    if not record.runtime_errors or record.expects_runtime_errors or outcome not in _LOG_DECIDES:
        return None
    lines = record.runtime_errors
    shown = lines if len(lines) <= _LINES_SHOWN else [*lines[:_LINES_SHOWN], f"({len(lines)} lines in all)"]
    return ConformanceFailure(
        f"{LOG_REQUIREMENT}: the runtime logged errors during a test that does not expect any (mark it "
        "expects_runtime_errors if it should):\n" + "\n".join(shown)
    )


def conclude(record: ItemRecord, phases: Sequence[Phase]) -> Verdict:
    """The verdict of a test that ran ``phases``.

    The first red phase decides: what follows a failure is often its consequence. Without one a skip does. A
    test that failed while the runtime logged errors it does not expect fails VER-05 as well. A test whose
    function was never called (``--setup-only``) showed nothing.
    """
    called = not phases or phases[-1].when != "teardown" or any(phase.when == "call" for phase in phases)
    quiet = Phase("", Outcome.PASS, "", 0.0) if called else _NOT_CALLED
    skipped = next((phase for phase in phases if phase.outcome is not Outcome.PASS), quiet)
    deciding = next((phase for phase in phases if phase.outcome.red), skipped)
    requirements = record.requirements
    if (
        deciding.outcome is Outcome.FAIL
        and record.runtime_errors
        and not record.expects_runtime_errors
        and LOG_REQUIREMENT not in requirements
    ):
        requirements = (*requirements, LOG_REQUIREMENT)
    duration_s = sum(phase.duration_s for phase in phases)
    return Verdict(deciding.outcome, deciding.message, requirements, duration_s)

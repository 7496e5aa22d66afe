"""A failure and the waivers in force: covered or not, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from pytest_rknpu.verdict import LOG_REQUIREMENT, ItemRecord, Outcome, Phase, WaivedBy
from pytest_rknpu.waivers.table import Waiver


def waive(
    waivers: Sequence[Waiver],
    phase: Phase,
    record: ItemRecord,
    board: str,
    soc: str,
    versions: Mapping[str, str],
    today: date,
) -> Phase:
    """The phase as it counts: ``waived`` where a waiver covers it, which ``record`` then says.

    Only the test function itself can be waived, not its set-up or clean-up. What a waiver of this requirement
    and board does not cover (another message, or its time is over) is noted.
    """
    if phase.when != "call" or phase.outcome not in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        return phase
    requirements = record.requirements
    if record.runtime_errors and not record.expects_runtime_errors:
        requirements = (*requirements, LOG_REQUIREMENT)
    notes = []
    for number, waiver in enumerate(waivers, start=1):
        if not waiver.covers(requirements, record.nodeid, board, soc, versions):
            continue
        if not waiver.describes(str(phase.outcome), phase.message):
            notes.append(
                f"waiver {number} is for another failure of {waiver.requirement}: {waiver.message!r}"
            )
        elif waiver.expired(today):
            notes.append(f"waiver {number} would cover this, but ended on {waiver.expires}: {waiver.reason}")
        else:
            return _waived(number, waiver, phase, record)
    for note in notes:
        record.note(note)
    return phase


def _waived(number: int, waiver: Waiver, phase: Phase, record: ItemRecord) -> Phase:
    record.waived_by = WaivedBy(
        number=number,
        original=str(phase.outcome),
        message=phase.message,
        reason=waiver.reason,
        link=waiver.link,
        expires=waiver.expires.isoformat(),
    )
    where = f" ({waiver.link})" if waiver.link else ""
    said = f"{waiver.reason}{where}, until {waiver.expires}; {phase.outcome} as described: {phase.message}"
    return replace(phase, outcome=Outcome.WAIVED, message=said)

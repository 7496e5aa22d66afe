"""Around a test function: look before it runs, clean up and listen to the runtime's log after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from pytest_rknpu.errors import BoardError
from pytest_rknpu.farm.collecting import Ours
from pytest_rknpu.farm.slots import Slot, Slots
from pytest_rknpu.verdict import Outcome, lacking, outcome_of, unexpected_log_error

# All that a test may raise to end itself; the rest is for pytest.
_ENDINGS = (Exception, pytest.skip.Exception, pytest.fail.Exception)


def before_test(ours: Ours, slots: Slots) -> None:
    """Skip with the proof what the SoC cannot do, before anything is leased; see to the board otherwise.

    Raises BoardError for a board in quarantine, or one that could not be opened again.
    """
    from pytest_rknpu.inventory.socs import find_soc

    if ours.board is None:
        return
    proof = ours.board.without_time if "time" in ours.needs else None
    proof = proof or lacking(ours.needs, find_soc(ours.board.soc), ours.board.evidence)
    if proof is not None:
        pytest.skip(proof)
    slots.of(ours.board.name).prepare()


@contextmanager
def explaining(ours: Ours, slot: Slot) -> Iterator[None]:
    """Around a phase of a test: what can be found out about a loss of the board follows its message.

    Where the test says something else, it becomes a note.
    """
    try:
        yield
    except _ENDINGS as error:
        found = slot.examine()
        if found and isinstance(error, BoardError):
            error.args = (f"{error}{found}",)
        elif found:
            ours.record.note(f"the board was lost{found}")
        raise
    found = slot.examine()
    if found:
        ours.record.note(f"the board was lost{found}")


@contextmanager
def finishing(item: pytest.Item, ours: Ours, slots: Slots) -> Iterator[None]:
    """Around the test function: hand the board back clean, and judge the runtime's log (VER-05).

    It happens within the call, so that an error in the log fails the test itself and not its tear-down.
    Whatever was seen counts for nothing where the board's lease was lost meanwhile: LeaseLost.
    """
    slot = slots.of(ours.board.name) if ours.board is not None else None
    try:
        with _handing_back(item, ours):
            yield
    except _ENDINGS as error:
        try:
            if slot is not None:
                slot.require_lease()
        except BoardError as lost:
            raise lost from error
        raise
    if slot is not None:
        slot.require_lease()


@contextmanager
def _handing_back(item: pytest.Item, ours: Ours) -> Iterator[None]:
    try:
        yield
    except _ENDINGS as error:
        with suppress(BoardError):  # what the test itself raised is nearer to the cause
            finish_npu(item, ours)
        failure = unexpected_log_error(ours.record, outcome_of(error))
        if failure is not None:
            raise failure from error
        raise
    finish_npu(item, ours)
    failure = unexpected_log_error(ours.record, Outcome.PASS)
    if failure is not None:
        raise failure


def finish_npu(item: pytest.Item, ours: Ours) -> None:
    """Destroy what the test left on its board and take the runtime's log; once, if the test had an NPU.

    Raises BoardLost where the board does not answer.
    """
    npu, ours.npu = ours.npu, None
    if npu is None:
        return
    report = npu.finish()
    ours.record.runtime_logged(report.error_lines, report.runtime_log)
    if report.left_behind:
        ours.record.note(f"left behind and destroyed: {', '.join(report.left_behind)}")
    if report.not_destroyed:
        listed = ", ".join(f"{name} ({code})" for name, code in report.not_destroyed.items())
        ours.record.note(f"could not be destroyed: {listed}")
    if report.runtime_log.strip():
        item.add_report_section("call", "runtime log", report.runtime_log)

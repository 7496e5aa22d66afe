"""VER-03: driver, runtime and model fit together as far as anybody knows, said before anything fails."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.session import Npu
from pytest_rknpu.session.artifacts import artifact_for
from pytest_rknpu.session.compatibility import combination_of, findings, header_of


@pytest.mark.requirement("VER-03")
def test_the_combination_is_not_known_to_fail(npu: Npu) -> None:
    """The table of pytest_rknpu.session.compatibility, for the model file that this board's suites load."""
    board = npu.session.board
    header = header_of(artifact_for(board, "probe_chain"))
    combination = combination_of(npu.soc.name, npu.soc.runtime, npu.session.versions, header)
    if header is None:
        npu.record.note("the model: packed for the emulator, no toolkit compiled it")
    else:
        npu.record.note(
            f"the model: format {header.format_version}, by RKNN-Toolkit2 {header.toolkit_version}"
        )
    if combination.runtime is None or combination.driver is None:
        unknown = {name: npu.session.versions[name] for name in ("runtime", "driver")}
        raise Inconclusive(f"board {board.name}: a version is not known: {unknown}")
    found = findings(combination)
    for remark in found.doubtful:
        npu.record.note(f"doubtful: {remark}")
    if found.failing:
        raise ConformanceFailure(f"board {board.name}: {'; '.join(found.failing)}")

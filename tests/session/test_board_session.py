"""A session with an emulated board: what programs come to, and how a lost board is noticed."""

from __future__ import annotations

import os
import signal

import pytest

from pytest_rknpu.agent.abi import rknn_query_cmd
from pytest_rknpu.errors import BoardLost, ConformanceFailure, HarnessError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import (
    BoardSession,
    LoadedModel,
    Npu,
    Program,
    RuntimeCallError,
    ZeroCopy,
    open_session,
)
from pytest_rknpu.session.artifacts import artifact_for
from pytest_rknpu.session.versions import RECORDED, is_value


def test_versions_say_that_they_are_emulated(session: BoardSession) -> None:
    assert set(RECORDED) <= set(session.versions)
    for name in ("bsp", "kernel", "driver", "driver_api", "runtime", "model_compiler"):
        assert is_value(session.versions[name]), name
        assert "emulated" in session.versions[name]
    assert session.runtime_release == (2, 3, 2)


def test_a_models_bytes_travel_once(session: BoardSession, monkeypatch: pytest.MonkeyPatch) -> None:
    data = artifact_for(session.board, "probe_chain")
    requests: list[str] = []
    original = session.request
    monkeypatch.setattr(
        session, "request", lambda m, *rest: (requests.append(m["request"]), original(m, *rest))[1]
    )
    assert session.store_model(data) == session.store_model(data)
    assert requests == ["has_models", "put_model"]


def test_an_unexpected_code_names_board_call_and_code(npu: Npu, pointwise: LoadedModel) -> None:
    program = Program()
    program.init("a", pointwise.sha256)
    program.query("a", rknn_query_cmd.RKNN_QUERY_INPUT_ATTR, "answer", index=9)
    with pytest.raises(RuntimeCallError, match=r"(?s)board desk, command 1: .*rknn_query.*RKNN_ERR_"):
        npu.execute(program)


def test_a_malformed_program_is_the_harness_fault(npu: Npu) -> None:
    program = Program()
    program.run("nobody")
    with pytest.raises(HarnessError, match="nobody"):
        npu.execute(program)


def test_what_a_test_leaves_behind_is_destroyed_and_named(npu: Npu, pointwise: LoadedModel) -> None:
    io = ZeroCopy("left", pointwise)
    program = Program()
    io.open(program)
    npu.execute(program)
    left = npu.finish().left_behind
    assert len(left) == 3
    assert any("left input 0" in name for name in left)
    program = Program()
    io.open(program)
    npu.execute(program)


def test_a_board_process_that_dies_is_lost_at_once(session: BoardSession) -> None:
    os.kill(session.agent["pid"], signal.SIGKILL)
    with pytest.raises(BoardLost, match="board desk: the agent's process ended during 'reset'"):
        session.reset()
    assert not session.alive
    with pytest.raises(BoardLost, match="ended earlier"):
        session.reset()


def test_closing_ends_the_process(board: Board) -> None:
    with open_session(board, seed=1) as opened:
        assert isinstance(opened, BoardSession)
        pid = opened.agent["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_difference_is_told_with_board_line_and_bytes(npu: Npu, pointwise: LoadedModel) -> None:
    data = npu.random_inputs(pointwise, 1)[0]
    right = npu.reference(pointwise, [data])[0]
    wrong = right[:130] + bytes([right[130] ^ 0xFF]) + right[131:]
    io = ZeroCopy("a", pointwise)
    program = Program()
    io.open(program)
    program.write(io.input, data)
    program.run(io.context)
    program.compare(io.output, wrong, "output")
    compared = npu.execute(program)["output"]
    with pytest.raises(
        ConformanceFailure, match=r"board desk \(rk3588\): it: 1 of 1 .* offsets 130, cache lines 2"
    ):
        npu.require_same(compared, "it")

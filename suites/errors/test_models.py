"""ERR-01 and ERR-02: models that this board cannot run are refused, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_rknpu.errors import HarnessError
from pytest_rknpu.session import Npu, Program, require_refused
from pytest_rknpu.session.artifacts import artifact_for
from pytest_rknpu.session.compatibility import header_of

MODEL = "probe_chain"
# A model for the one may well run on the other: the SDK ships one for both.
SAME_NPU = {"rk3588": {"rk3588"}, "rk3566": {"rk3566", "rk3568"}, "rv1106": {"rv1106", "rv1103"}}


@pytest.mark.requirement("ERR-01")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("other", list(SAME_NPU))
def test_model_for_another_soc(npu: Npu, other: str) -> None:
    """rknn_init of a model built for another SoC, with another NPU."""
    if npu.soc.name in SAME_NPU[other]:
        other = "rk3562"
    data = artifact_for(npu.session.board, MODEL, soc=other)
    header = header_of(data)
    if header is not None and npu.soc.toolkit_platform in header.target_platforms:
        raise HarnessError(f"the model for {other} is one for {', '.join(header.target_platforms)}")
    _refused(npu, data, f"rknn_init with a model for {other} on {npu.soc.name}")


BROKEN: dict[str, Callable[[Npu, bytes], bytes]] = {
    "empty": lambda npu, data: b"",
    "one-byte": lambda npu, data: data[:1],
    "header-only": lambda npu, data: data[:64],
    "half": lambda npu, data: data[: len(data) // 2],
    "last-byte-missing": lambda npu, data: data[:-1],
    "random": lambda npu, data: bytes(npu.random.bytes(len(data))),
    "random-after-magic": lambda npu, data: data[:4] + bytes(npu.random.bytes(len(data) - 4)),
    "zeros": lambda npu, data: bytes(len(data)),
}


@pytest.mark.requirement("ERR-02")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("damage", list(BROKEN))
def test_damaged_model(npu: Npu, damage: str) -> None:
    """rknn_init of a truncated, empty or random model."""
    data = BROKEN[damage](npu, artifact_for(npu.session.board, MODEL))
    _refused(npu, data, f"rknn_init with a damaged model ({damage})")


def _refused(npu: Npu, data: bytes, what: str) -> None:
    program = Program()
    with program.child("child"):
        program.init_data("a", data, expect="any", save="code")
    require_refused(npu, npu.execute(program)["child"], "code", what)
    npu.require_health()

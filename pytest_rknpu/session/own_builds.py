"""What RKNN-Toolkit2 makes of a user's model on this host: its build log and the graph it was built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_rknpu.session.user_models import UserModel, built
from pytest_rknpu.toolchain import Plan, parse_build_log

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board


@dataclass(frozen=True)
class OwnBuild:
    """``plan`` is the compiler's; ``fused_onnx`` the graph that it refers to, None where it wrote none."""

    plan: Plan
    fused_onnx: bytes | None
    size: int
    """Bytes of the .rknn file."""

    @property
    def cpu_operators(self) -> list[str]:
        """The layers that fell to the CPU, those that only move inputs and outputs apart (ACC-06)."""
        return [
            f"{layer.op_type} {layer.name}".rstrip()
            for layer in self.plan.layers
            if layer.target == "CPU" and layer.op_type not in ("InputOperator", "OutputOperator")
        ]


def own_build(board: Board, model: UserModel, *, sparse_infer: bool | None = None) -> OwnBuild:
    """The build of ``model`` for a simulator board's SoC.

    Skips elsewhere, with the reason: a build log is the host's and no evidence of a board. Raises ModelError,
    ToolkitError.
    """
    if board.runtime != "simulator":
        pytest.skip(
            f"{board.name}: a build log is RKNN-Toolkit2's on this host and no evidence of this board; one "
            f'with runtime = "simulator" and soc = "{board.soc}" shows it'
        )
    compiled = built(model, board.platform, sparse_infer=sparse_infer)
    log = compiled.log.read_text(encoding="utf-8", errors="replace")
    fused = None if compiled.fused_graph is None else compiled.fused_graph.read_bytes()
    return OwnBuild(parse_build_log(log).plan, fused, compiled.path.stat().st_size)

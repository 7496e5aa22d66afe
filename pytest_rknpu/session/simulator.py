"""A board that is RKNN-Toolkit2's simulator on this host: versions, but no C runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_rknpu.inventory.socs import SoC

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board


class SimulatorSession:
    """Stands beside BoardSession with the attributes that reports read."""

    def __init__(self, board: Board, toolkit_version: str) -> None:
        self.board = board
        self.soc: SoC = board.chip
        self.facts: Mapping[str, Any] = {}
        self.alive = True
        self.versions = {
            "bsp": "absent",
            "kernel": "absent",
            "driver": "absent",
            "runtime": f"simulator of RKNN-Toolkit2 {toolkit_version}",
            "toolkit": toolkit_version,
            "model_compiler": toolkit_version,
            "clocks": "absent",
        }

    def close(self) -> None:
        """Nothing is held between calls."""
        self.alive = False

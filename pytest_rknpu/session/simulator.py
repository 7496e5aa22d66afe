"""RKNN-Toolkit2's simulator on this host: a board with versions but no C runtime, and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_rknpu.inventory.socs import SoC

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.toolchain import CompileOptions, ModelSource

Note = Callable[[str], None]


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

    def cut(self) -> None:
        """See BoardSession."""
        self.alive = False

    def close(self) -> None:
        """Nothing is held between calls."""
        self.alive = False


def simulated(
    model: bytes | ModelSource,
    options: CompileOptions,
    inputs: Sequence[NDArray[float32]],
    note: Note | None = None,
) -> list[NDArray[float32]]:
    """The simulator's outputs, (N, ...) each, for inputs (N, 1, ...) each.

    Outputs of an earlier run are given only to who writes down that they are: ``note`` gets that sentence.
    Without it the simulator runs. Raises ToolkitError.
    """
    from pytest_rknpu.toolchain import simulate_inputs, simulation_of

    if note is None:
        return simulate_inputs(model, options, inputs)
    simulation = simulation_of(model, options, inputs)
    if simulation.stored:
        note(simulation.stored)
    return simulation.outputs

"""What a suite author touches.

``board`` and ``npu`` make one item per selected board. Import types from here for annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_rknpu.errors import ConfigurationError, HarnessError
from pytest_rknpu.farm.collecting import OURS, PROBLEMS, Ours
from pytest_rknpu.farm.run import RUN, Effort, derive_seed
from pytest_rknpu.farm.slots import SLOTS, LiveBoard

if TYPE_CHECKING:
    from pytest_rknpu.session import Npu, SimulatorSession
    from pytest_rknpu.verdict import ItemRecord

Inference = Callable[..., "list[Any]"]

__all__ = [
    "Effort",
    "Inference",
    "ItemRecord",
    "LiveBoard",
    "board",
    "effort",
    "inference",
    "npu",
    "record",
    "rknpu_seed",
]


@pytest.fixture(scope="session")
def board(request: pytest.FixtureRequest) -> Iterator[LiveBoard]:
    """A selected board, leased and open for all its tests.

    Raises BoardError (outcome infra) where it is held by somebody else for too long, or cannot be reached.
    """
    name = getattr(request, "param", None)
    if name is None:
        problem = request.config.stash[PROBLEMS].first
        raise ConfigurationError(problem or "the fixture `board` needs a board as its parameter")
    slot = request.config.stash[SLOTS].of(name)
    with slot.opened():
        yield LiveBoard(slot)


@pytest.fixture
def npu(
    request: pytest.FixtureRequest, board: LiveBoard, record: ItemRecord, rknpu_seed: int
) -> Iterator[Npu]:
    """The NPU of a board for one test.

    What the test leaves behind there is destroyed and named as soon as its function returns, so that fixtures
    which build on `npu` have nothing to clean up.

    Skips with the proof where the board's runtime library lacks what ``pytest.mark.needs`` asks for.
    """
    from pytest_rknpu.farm.finishing import finish_npu
    from pytest_rknpu.session import Npu
    from pytest_rknpu.verdict import lacking

    ours = _ours(request)
    session = board.session
    proof = lacking(ours.needs, session.soc, board.board.evidence, session.functions)
    if proof is not None:
        pytest.skip(proof)
    ours.npu = Npu(session, record, rknpu_seed)
    yield ours.npu
    finish_npu(request.node, ours)  # where the function never ran


@pytest.fixture
def inference(request: pytest.FixtureRequest, board: LiveBoard) -> Inference:
    """``inference(model, inputs)`` on any kind of board.

    Float32 (N, C, H, W) in, float32 (N, ...) out for each output.

    Boards with a C runtime go through zero copy, simulator boards through RKNN-Toolkit2 (ToolkitError).
    """
    from pytest_rknpu.session import inference as ways

    if board.board.runtime == "simulator":
        return partial(ways.simulate, cast("SimulatorSession", board.session))
    return partial(ways.infer, request.getfixturevalue("npu"))


@pytest.fixture
def record(request: pytest.FixtureRequest, rknpu_seed: int) -> ItemRecord:
    """Where a test writes figures (``record.measure(name, value, unit)``) and remarks (``record.note``)."""
    from pytest_rknpu.verdict import ItemRecord

    ours = request.node.stash.get(OURS, None)
    return ours.record if ours is not None else ItemRecord(request.node.nodeid, (), rknpu_seed)


@pytest.fixture(scope="session")
def effort(request: pytest.FixtureRequest) -> Effort:
    """How long the run may take: ``effort.rounds(300)`` scales an iteration count by ``--rknpu-effort``."""
    return request.config.stash[RUN].effort


@pytest.fixture
def rknpu_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test's random choices: a hash of the run's seed and the node id."""
    return derive_seed(request.config.stash[RUN].origin.seed, request.node.nodeid)


def __getattr__(name: str) -> Any:
    """`ItemRecord` is here for suites that annotate with it, and imported when one does: this module is loaded
    in every run of pytest."""
    if name == "ItemRecord":
        from pytest_rknpu.verdict import ItemRecord

        return ItemRecord
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _ours(request: pytest.FixtureRequest) -> Ours:
    ours: Ours | None = request.node.stash.get(OURS, None)
    if ours is None:
        raise HarnessError(f"{request.node.nodeid}: uses a board, but was not collected as one that does")
    return ours

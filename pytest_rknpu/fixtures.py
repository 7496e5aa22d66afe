"""What a suite author touches.

``board``, ``npu`` and ``connected`` make one item per selected board, ``model_name`` and ``subject`` one per
model. Import types from here for annotations.
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
    from pytest_rknpu.inventory.budget_table import Budget
    from pytest_rknpu.session import ConnectedSession, Npu, SimulatorSession, Subject, UserModels
    from pytest_rknpu.session.builds import Build
    from pytest_rknpu.session.latency import Latency
    from pytest_rknpu.verdict import ItemRecord

Inference = Callable[..., "list[Any]"]
BuildOf = Callable[[str], "Build"]

__all__ = [
    "BuildOf",
    "Effort",
    "Inference",
    "ItemRecord",
    "LiveBoard",
    "board",
    "budgets",
    "build",
    "connected",
    "effort",
    "inference",
    "latency",
    "model_name",
    "npu",
    "record",
    "rknpu_seed",
    "subject",
    "user_models",
]


_TOO_LATE = (
    "`board`, and what builds on it, must be an argument of the test or of its fixtures, so that pytest makes"
    " one test per board; getfixturevalue comes too late for that, and unittest's classes have no parameters"
)


@pytest.fixture(scope="session")
def board(request: pytest.FixtureRequest) -> Iterator[LiveBoard]:
    """A selected board, leased and open for all its tests.

    Raises BoardError (outcome infra) where it is held by somebody else for too long, or cannot be reached.
    """
    name = getattr(request, "param", None)
    if name is None:
        problem = request.config.stash[PROBLEMS].first
        raise ConfigurationError(problem or _TOO_LATE)
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
    if request.config.stash[RUN].models:
        ours.npu.user_models = request.getfixturevalue("user_models")
    yield ours.npu
    finish_npu(request.node, ours)  # where the function never ran


@pytest.fixture
def budgets(request: pytest.FixtureRequest, board: LiveBoard) -> tuple[Budget, ...]:
    """The ``[[budget]]`` tables that hold for a board, one for each model and core mask.

    Where there is one for the board and one for its SoC they are one, and the board's keys go first. A test
    that uses `model_name` as well has an item for each model that a budget names.
    """
    return request.config.stash[RUN].budgets_for(board.session.board)


@pytest.fixture
def latency(request: pytest.FixtureRequest, board: LiveBoard) -> Iterator[Latency]:
    """Timing on a board, its clocks pinned where boards.toml says so. Mark the test ``needs("time")``.

    Skips with the reason on boards whose time means nothing.
    """
    _ours(request)
    from pytest_rknpu.session.latency import Latency, pinned_clocks

    if board.board.without_time is not None:
        pytest.skip(board.board.without_time)
    npu = request.getfixturevalue("npu")
    with pinned_clocks(npu) as pinned:
        yield Latency(npu, request.config.stash[RUN].budgets_for(board.session.board), pinned)


@pytest.fixture
def inference(request: pytest.FixtureRequest, board: LiveBoard) -> Inference:
    """``inference(model, inputs)`` on any kind of board.

    Float32 (N, C, H, W) in, float32 (N, ...) out for each output.

    Boards with a C runtime go through zero copy, simulator boards and connected ones through RKNN-Toolkit2
    (ToolkitError, BoardError). ``model`` may be one of boards.toml (`subject` has it); models with several
    inputs take a list of arrays.
    """
    _ours(request)
    from pytest_rknpu.session import inference as ways

    if board.board.runtime == "simulator":
        record: ItemRecord = request.getfixturevalue("record")
        return partial(ways.simulate, cast("SimulatorSession", board.session), note=record.note)
    if board.board.runtime == "connected":
        return cast("ConnectedSession", board.session).inference
    return partial(ways.infer, request.getfixturevalue("npu"))


@pytest.fixture
def connected(board: LiveBoard) -> ConnectedSession:
    """A board that RKNN-Toolkit2 drives from this host (``runtime = "connected"``)."""
    return cast("ConnectedSession", board.session)


@pytest.fixture(scope="session")
def user_models(request: pytest.FixtureRequest) -> UserModels:
    """The ``[[model]]`` tables of boards.toml, each loaded when first asked for."""
    from pytest_rknpu.session import UserModels

    return UserModels(request.config.stash[RUN].models)


@pytest.fixture
def model_name(request: pytest.FixtureRequest) -> str:
    """The name of a model: one that ``@pytest.mark.models`` names, or one of boards.toml."""
    name: str | None = getattr(request, "param", None)
    if name is None:
        raise ConfigurationError(f"{request.node.nodeid}: uses `model_name`, but is not marked models")
    return name


@pytest.fixture
def subject(model_name: str, user_models: UserModels, board: LiveBoard) -> Subject:
    """The model of that name with what to feed it and what to hold it to on the board's SoC."""
    from pytest_rknpu.session import subject_of

    return subject_of(model_name, user_models, board.board.platform)


@pytest.fixture
def build(request: pytest.FixtureRequest, board: LiveBoard) -> BuildOf:
    """``build(name)``: a model as RKNN-Toolkit2 compiles it for the board's SoC, with its build log.

    Skips with the proof where nothing is compiled. What the other collected tests of this board ask for (by
    their parameter ``model_name``) is compiled at the same time.
    """
    from pytest_rknpu.session import builds

    proof = builds.why_nothing_is_built(board.board)
    if proof is not None:
        pytest.skip(proof)
    platform = board.board.platform
    own = request.getfixturevalue("user_models") if request.config.stash[RUN].models else None
    builds.build_ahead(platform, _models_to_build(request.session.items, board.board.name), own)
    return partial(builds.build_of, platform, own=own)


def _models_to_build(items: list[pytest.Item], board: str) -> list[str]:
    parameters: list[dict[str, Any]] = [
        item.callspec.params
        for item in items
        if isinstance(item, pytest.Function) and "build" in item.fixturenames and hasattr(item, "callspec")
    ]
    names: set[str] = {p["model_name"] for p in parameters if p.get("board") == board and "model_name" in p}
    return sorted(names)


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
    """`ItemRecord`, for suites that annotate with it; no sooner, as every run of pytest loads this module."""
    if name == "ItemRecord":
        from pytest_rknpu.verdict import ItemRecord

        return ItemRecord
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _ours(request: pytest.FixtureRequest) -> Ours:
    ours: Ours | None = request.node.stash.get(OURS, None)
    if ours is None:
        raise HarnessError(
            f"{request.node.nodeid}: needs the fixture `board` of pytest-rknpu; another one of that name "
            "replaces it here, so rename that"
        )
    return ours

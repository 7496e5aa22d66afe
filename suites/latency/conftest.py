"""What the latency tests share: the pairs of model and core mask that are timed, and a model for all else."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.farm.run import RUN
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.inventory.budgets import core_mask_of, one_core
from pytest_rknpu.report.results import Results
from pytest_rknpu.report.timed import read_run
from pytest_rknpu.session import LoadedModel
from pytest_rknpu.session.latency import Latency

ONE_CORE = "one-core"
_BASELINE = pytest.StashKey[Results]()
ALWAYS_TIMED = ("digits_cnn", "probe_wide")
"""A trained classifier, and the probe with the most work: measured also where no budget names them."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each of a few models and each of boards.toml on one core, and for each model and core mask
    that a budget names."""
    if "timed" not in metafunc.fixturenames:
        return
    if "baseline" in metafunc.fixturenames:
        _ = _stored(metafunc.config)  # before a board is touched
    pairs = [(name, ONE_CORE) for name in (*ALWAYS_TIMED, *_own_models(metafunc.config))]
    pairs += [pair for pair in _budgeted(metafunc.config) if pair not in pairs]
    ids = [f"{name}-{core_mask}" for name, core_mask in pairs]
    metafunc.parametrize("timed", pairs, ids=ids, indirect=True)


def _own_models(config: pytest.Config) -> list[str]:
    """The models of boards.toml."""
    try:
        return [model.name for model in config.stash[RUN].models]
    except ConfigurationError:
        return []


def _budgeted(config: pytest.Config) -> list[tuple[str, str]]:
    """The pairs of boards.toml. A file that cannot be read is told by the plugin, which needs it too."""
    try:
        file = config.stash[RUN].file
    except ConfigurationError:
        return []
    chips = {board.name: board.chip for board in file.boards}
    chips |= {board.soc: board.chip for board in file.boards}
    found = {}
    for budget in file.budgets:
        chip = chips.get(budget.board or budget.soc or "")
        is_default = chip is None or budget.core_mask == one_core(chip)
        found[budget.model, ONE_CORE if is_default else str(budget.core_mask)] = None
    return list(found)


def _stored(config: pytest.Config) -> Results | None:
    """The run to compare with; None where none is named. Raises UsageError where it cannot be read."""
    path = config.stash[RUN].baseline
    if path is None or _BASELINE in config.stash:
        return config.stash.get(_BASELINE, None)
    try:
        config.stash[_BASELINE] = read_run(path)
        return config.stash[_BASELINE]
    except ConfigurationError as error:
        raise pytest.UsageError(f"--rknpu-baseline: {error}") from None


@pytest.fixture
def baseline(request: pytest.FixtureRequest) -> Results | None:
    """The run of another version set, where one is named."""
    return _stored(request.config)


@pytest.fixture
def timed(request: pytest.FixtureRequest, latency: Latency) -> tuple[str, str | None]:
    """A model's name and the core mask to time it under, as this board has it (None: it has none)."""
    name, core_mask = request.param
    soc = latency.npu.soc
    if core_mask == ONE_CORE:
        return name, one_core(soc)
    try:
        known = core_mask_of(soc, core_mask)
    except ConfigurationError as error:
        pytest.skip(str(error))
    if known not in latency.npu.core_masks:
        release = ".".join(map(str, latency.npu.session.runtime_release)) or "of unknown version"
        pytest.skip(f"{latency.npu.session.board.name}: the runtime {release} does not know {known}")
    return name, known


@pytest.fixture
def probe(latency: Latency) -> LoadedModel:
    """The model with the most work of those that are shipped, for what is about no model in particular."""
    return latency.npu.model(ALWAYS_TIMED[-1])


@pytest.fixture
def blocks(effort: Effort) -> int:
    """Into how many blocks of random order an interleaved comparison goes."""
    return max(30, effort.rounds(300))

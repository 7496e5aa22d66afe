"""The pytest plugin: hooks only; what they do is done elsewhere, and imported when there are boards.

Importing this module must stay cheap, since pytest does so in every project of an environment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rknpu import fixtures
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.farm.announce import announce
from pytest_rknpu.farm.collecting import (
    OURS,
    PROBLEMS,
    Problems,
    adopt,
    manifest_of,
    parametrise,
    split_by_requirement,
)
from pytest_rknpu.farm.model_names import parametrise_models
from pytest_rknpu.farm.options import add_markers, add_options
from pytest_rknpu.farm.run import RUN, Origin, Run, run_of
from pytest_rknpu.farm.slots import SLOTS, Slots

if TYPE_CHECKING:
    from pytest_rknpu.report.collector import Collector

_COLLECTOR: pytest.StashKey[Collector] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini values."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Find out what the run is about. Boards are read here only if an option chooses among them."""
    add_markers(config)
    told = getattr(config, "workerinput", {}).get("rknpu")
    try:
        run = run_of(config, Origin(**told) if told else None)
        if run.asked:
            _ = run.boards
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[RUN] = run
    config.stash[PROBLEMS] = Problems()
    config.stash[SLOTS] = Slots(run, lambda text: announce(config, text))
    config.pluginmanager.register(fixtures, "rknpu-fixtures")
    if run.configured and not _is_worker(config):
        from pytest_rknpu.report.reporters import register_reporters

        config.stash[_COLLECTOR] = register_reporters(run, config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Clear away what workers left for the controller."""
    run = config.stash.get(RUN, None)
    if run is not None and not _is_worker(config) and os.path.isdir(run.origin.manifest):
        shutil.rmtree(run.origin.manifest, ignore_errors=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Open the report before xdist starts its workers."""
    collector = session.config.stash.get(_COLLECTOR, None)
    if collector is not None:
        from pytest_rknpu.report.reporters import begin_reporting

        try:
            begin_reporting(collector, session.config)
        except ConfigurationError as error:
            raise pytest.UsageError(str(error)) from None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """The boards, where an option chose them; otherwise they are shown once a test asks for one."""
    return _header(config) if config.stash[RUN].asked else []


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """The boards, where they were not shown before."""
    ours = [item.stash[OURS] for item in items if OURS in item.stash]
    return _header(config) if any(own.board for own in ours) else []


@pytest.hookimpl(tryfirst=True)  # before the marks of the test: the board leads its node id
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item per board, and per model where a test is marked so."""
    stash = metafunc.config.stash
    parametrise(metafunc, stash[RUN], stash[PROBLEMS])
    parametrise_models(metafunc, stash[RUN], stash[PROBLEMS])


@pytest.hookimpl(trylast=True)  # after -k and -m: what was deselected need not be right
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check markers; refuse a run whose boards cannot be used, unless the controller has to do so."""
    run, problems = config.stash[RUN], config.stash[PROBLEMS]
    problem = None
    try:
        _keep_required(config, items)
        adopt(items, run)
    except ConfigurationError as error:
        problem = str(error)
    if any(OURS in item.stash for item in items):
        from pytest_rknpu.farm.progress import show_compiles
        from pytest_rknpu.report import item_hooks, loss_hooks

        problem = problem or _waivers_problem(run)
        config.pluginmanager.register(item_hooks, "rknpu-items")
        config.pluginmanager.register(loss_hooks, "rknpu-losses")
        config.pluginmanager.register(loss_hooks.Counting(config), "rknpu-counting")
        show_compiles(config)
        problem = problem or problems.first
    if _is_worker(config):
        _tell_controller(config, items, problem)
    elif problem is not None:
        raise pytest.UsageError(problem)


def _waivers_problem(run: Run) -> str | None:
    """What is wrong with waivers.toml: known before any board is touched."""
    try:
        _ = run.waivers
    except ConfigurationError as error:
        return str(error)
    return None


def _keep_required(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What --requirement and --rknpu-only leave out is deselected, as -k and -m do it."""
    globs, only = config.getoption("rknpu_requirements"), config.getoption("rknpu_only")
    if only:
        _keep_only(config, items, only)
    if globs:
        _keep(config, items, split_by_requirement(items, globs)[0])


def _keep_only(config: pytest.Config, items: list[pytest.Item], nodeids: list[str]) -> None:
    """A node id of a clone fits a wheel, too. A run of nothing would look like a repair."""
    from pytest_rknpu.report.node_ids import suite_test

    wanted = {suite_test(nodeid) for nodeid in nodeids}
    _keep(config, items, [item for item in items if suite_test(item.nodeid) in wanted])
    missing = wanted.difference(suite_test(item.nodeid) for item in items)
    if missing:
        raise ConfigurationError(
            f"--rknpu-only {min(missing)}: no such test was collected; give the run's own --boards, --board "
            "and suites, and the node id as results.jsonl has it"
        )


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist, controller: tell a worker which run it belongs to."""
    node.workerinput["rknpu"] = asdict(node.config.stash[RUN].origin)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """xdist, controller: deal tests out by board, unless another way than the usual one was asked for."""
    if config.getoption("dist") != "load" or not config.stash[RUN].configured:
        return None
    from pytest_rknpu.farm.schedule import BoardScheduling

    run, collector = config.stash[RUN], config.stash[_COLLECTOR]
    try:
        seconds_of = collector.seconds_of()
    except ConfigurationError as error:
        raise pytest.UsageError(f"--rknpu-durations: {error}") from None
    return BoardScheduling(config, log, collector.station_of, lambda: run.places, seconds_of)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """xdist, controller: read what the worker collected, and refuse the run if its boards cannot be used."""
    from pytest_rknpu.farm.manifest import take_manifest

    config = node.config
    manifest = take_manifest(Path(config.stash[RUN].origin.manifest), node.workerinput["workerid"])
    if manifest is None:
        return
    if manifest.problem is not None:
        raise pytest.UsageError(manifest.problem)
    config.stash[_COLLECTOR].manifest = manifest
    if any(planned.board for planned in manifest.tests.values()):
        for line in _header(config):
            announce(config, line.removeprefix("rknpu: "))


def _is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for an xdist controller."""
    return hasattr(config, "workerinput")


def _tell_controller(config: pytest.Config, items: Sequence[pytest.Item], problem: str | None) -> None:
    """Leave word of what was collected, if it is of any interest."""
    if problem is None and not any(OURS in item.stash for item in items):
        return
    from pytest_rknpu.farm.manifest import write_manifest

    worker = str(config.workerinput["workerid"])  # type: ignore[attr-defined]  # xdist put it there
    folder = Path(config.stash[RUN].origin.manifest)
    try:
        write_manifest(folder, worker, manifest_of(items, problem))
    except OSError as error:
        if problem is not None:
            raise pytest.UsageError(problem) from None
        reason = error.strerror or error
        announce(config, f"{folder}: {reason}; tests are dealt out by the boards in their names alone")


def _header(config: pytest.Config) -> list[str]:
    """The header, once, unless -q silences it."""
    collector = config.stash.get(_COLLECTOR, None)
    if collector is None or collector.header_shown or config.get_verbosity() < 0:
        return []
    from pytest_rknpu.report.terminal import header_lines

    collector.header_shown = True
    return header_lines(config.stash[RUN])

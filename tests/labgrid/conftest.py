"""A labgrid farm with four places of one SoC, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from labgrid_farm import Farm, labgrid_scripts, running_farm
from loopback_sshd import needs_sshd

PLACES = {f"shelf-{number}": {"soc": "rk3588", "shelf": str(number)} for number in range(4)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every board of the farm is an sshd."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(needs_sshd)


@pytest.fixture(scope="session")
def _farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    scripts = labgrid_scripts()
    if scripts is None:
        pytest.skip("labgrid is not installed; install it with: pipx install labgrid")
    with running_farm(tmp_path_factory.mktemp("farm"), scripts, PLACES) as farm:
        yield farm


@pytest.fixture
def farm(_farm: Farm) -> Iterator[Farm]:
    """The farm. Each test has to leave all places free, and to have used no board twice at once."""
    yield _farm
    _farm.require_sound()
    assert _farm.holders() == {}
    assert _farm.used_twice() == []

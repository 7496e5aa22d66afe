"""MEM-12 raises no alarm on random networks; here a few, by hand many (random_networks.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from random_networks import checked, network

from pytest_rknpu.toolchain import toolkit_status

STATUS = toolkit_status()
pytestmark = pytest.mark.skipif(
    STATUS.version is None, reason=f"{STATUS.reason}; install it with: {STATUS.install_command}"
)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One cache for this module, none of the user's."""
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "random-networks-cache"))
    return


@pytest.mark.parametrize("seed", [1, 7, 12])
@pytest.mark.parametrize("soc", ["rk3576", "rv1106"])
def test_no_alarm(seed: int, soc: str) -> None:
    check, _ = checked(seed, soc)
    assert check.findings == ()
    assert check.unknown == ()
    assert len(check.tensors) > 3


def test_a_seed_is_a_network() -> None:
    assert network(1) == network(1) != network(2)

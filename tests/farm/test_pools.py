"""Which boards stand for each other."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.farm.pools import pools_of, single
from pytest_rknpu.inventory.schema import Board


def emulated(name: str, soc: str = "rk3588", **more: Any) -> Board:
    return Board(name=name, soc=soc, runtime="emulator", **more)


def over_ssh(name: str, host: str, **more: Any) -> Board:
    return Board(name=name, soc="rk3588", runtime="librknnrt", transport="ssh", host=host, **more)


def summary(*boards: Board) -> dict[str, list[str]]:
    return {pool.board.name: [board.name for board in pool.boards] for pool in pools_of(boards)}


def test_boards_of_a_soc_that_are_described_alike_are_equal() -> None:
    assert summary(emulated("a"), emulated("x", "rk3576"), emulated("b", seed=3, note="new")) == {
        "rk3588": ["a", "b"],
        "rk3576": ["x"],
    }
    assert summary(over_ssh("a", "h1", user="root", port=1), over_ssh("b", "h2", python="/py")) == {
        "rk3588": ["a", "b"]
    }


def test_runtimes_are_told_apart() -> None:
    simulated = Board(name="s", soc="rk3588", runtime="simulator")
    assert summary(emulated("a"), simulated, emulated("b")) == {
        "rk3588-emulator": ["a", "b"],
        "rk3588-simulator": ["s"],
    }


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"runtime_version": "1.6.0"}, "runtime_version"),
        ({"faults": ("sync-to-device-dropped",)}, "faults"),
        ({"tags": {"site": "lab-2"}}, "tags"),
        ({"pin": True}, "pin"),
    ],
)
def test_boards_that_differ_need_pools(more: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"boards a and b .*differ in {field}; .*`pool`"):
        pools_of([emulated("a"), emulated("b", **more)])
    pools = summary(emulated("a", pool="old"), emulated("b", pool="new", **more))
    assert pools == {"old": ["a"], "new": ["b"]}
    assert summary(emulated("a", pool="mixed"), emulated("b", pool="mixed", **more)) == {"mixed": ["a", "b"]}


def test_a_pool_is_of_one_soc_and_runtime() -> None:
    with pytest.raises(ConfigurationError, match="differ in soc"):
        pools_of([emulated("a", pool="p"), emulated("b", "rk3576", pool="p")])
    with pytest.raises(ConfigurationError, match="differ in runtime"):
        pools_of([emulated("a", pool="p"), over_ssh("b", "h", pool="p")])


def test_two_pools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two pools are called rk3588"):
        pools_of([emulated("a"), emulated("b", "rk3576", pool="rk3588"), emulated("c", "rk3566")])


def test_places_are_counted() -> None:
    farm: dict[str, Any] = {"soc": "rk3588", "runtime": "librknnrt", "transport": "labgrid"}
    found = Board(name="any", filter={"soc": "rk3588"}, places=3, **farm)
    (pool,) = pools_of([found, Board(name="one", place="p", filter={}, pool="rk3588-librknnrt", **farm)][:1])
    assert (pool.places, pool.shared) == (3, True)
    assert (single(found).places, single(found).shared) == (1, False)
    (pool,) = pools_of([over_ssh("a", "h1"), over_ssh("b", "h2")])
    assert pool.places == 2


def test_one_filter_twice_would_count_places_twice() -> None:
    farm: dict[str, Any] = {"soc": "rk3588", "runtime": "librknnrt", "transport": "labgrid"}
    with pytest.raises(ConfigurationError, match="ask for the same places"):
        pools_of([Board(name=name, filter={"soc": "rk3588"}, **farm) for name in "ab"])

"""What an emulated board leaves to chance follows from the test's seed, whatever was done before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, LoadedModel, Npu, Program, ZeroCopy, open_session
from pytest_rknpu.session.dice import Dice
from pytest_rknpu.session.program import BIDIRECTIONAL
from pytest_rknpu.verdict import ItemRecord


def commands(*names: str) -> dict[str, Any]:
    program = Program()
    for name in names:
        program.write(name, name.encode())
    return program.plain()


def test_a_list_has_a_seed_of_its_own_each_time_it_is_sent() -> None:
    first = [Dice(1).seed_for(commands("a"))]
    dice = Dice(1)
    sent = [dice.seed_for(commands(*names)) for names in ("b", "a", "a", "ab")]
    assert sent[1] == first[0]
    assert len(set(sent)) == 4
    assert Dice(2).seed_for(commands("a")) != first[0]
    assert all(0 <= seed < 2**63 for seed in sent)


def test_what_is_written_counts() -> None:
    said = [{"commands": [], "blobs": {"name": data}} for data in (b"a", b"b")]
    assert len({Dice(1).seed_for(program) for program in said}) == 2


def stale_bytes(npu: Npu, model: LoadedModel) -> bytes:
    """What the CPU sees of an output that nobody synchronised: lines that its cache holds by chance."""
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    program = Program()
    io.open(program)
    program.write(io.input, bytes(range(256)) * (model.description.inputs[0].native_size // 256))
    program.fill(io.output, 0xA5)
    program.sync(io.output, BIDIRECTIONAL, io.context)  # dropped, and fetched again by chance before the run
    program.run(io.context)
    program.read(io.output, "seen")
    io.close(program)
    seen: bytes = npu.execute(program)["seen"]
    return seen


@pytest.fixture
def chancy() -> Iterator[BoardSession]:
    """A board whose seed boards.toml does not give."""
    with open_session(Board(name="desk", soc="rk3588", runtime="emulator"), seed=1) as opened:
        assert isinstance(opened, BoardSession)
        yield opened


def test_chance_is_the_same_after_other_tests(chancy: BoardSession) -> None:
    def another(seed: int) -> tuple[Npu, LoadedModel]:
        npu = Npu(chancy, ItemRecord("test", (), seed), seed)
        return npu, npu.model("probe_pointwise")

    first = another(1)
    once, twice = stale_bytes(*first), stale_bytes(*first)
    for _ in range(3):
        stale_bytes(*another(5))
    again = another(1)
    assert [stale_bytes(*again), stale_bytes(*again)] == [once, twice]
    assert len({once, twice, stale_bytes(*another(2))}) == 3

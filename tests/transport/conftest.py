"""Boards behind a real sshd of this host, with a compiled stand-in for the runtime library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from loopback_sshd import Sshd, running_sshd

from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession
from pytest_rknpu.session.board_session import connect
from pytest_rknpu.transport import Gateway, open_gateway


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd that the tests of a module share; what one changes in its files, it puts back."""
    with running_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def described(fake_runtime: str, tmp_path: Path) -> Callable[..., Board]:
    """``described(**keys)``: a real board that is this host, with its models in a folder of the test."""

    def describe(**keys: object) -> Board:
        known = {
            "name": "desk",
            "soc": "rk3588",
            "runtime": "librknnrt",
            "python": sys.executable,
            "library": fake_runtime,
        }
        return Board.model_validate({**known, "model_cache": str(tmp_path / "models"), **keys})

    return describe


@pytest.fixture
def reached(described: Callable[..., Board]) -> Iterator[Callable[..., Gateway]]:
    """``reached(**keys)``: a gateway to such a board, without a session, closed at the end of the test."""
    with ExitStack() as resources:

        def reach(**keys: object) -> Gateway:
            gateway = open_gateway(described(**keys))
            resources.callback(gateway.close)
            return gateway

        yield reach


@pytest.fixture
def opened(described: Callable[..., Board]) -> Iterator[Callable[..., BoardSession]]:
    """``opened(**keys)``: a session with such a board, closed at the end of the test."""
    with ExitStack() as resources:
        yield lambda **keys: connect(described(**keys), seed=1, resources=resources)

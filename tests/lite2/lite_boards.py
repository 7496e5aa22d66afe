"""Emulated boards with RKNN-Toolkit-Lite2: a stand-in that has the call signatures of the real package."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu import emulator
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, Npu, open_session
from pytest_rknpu.verdict import ItemRecord

STAND_IN = Path(__file__).parent / "stand_in"
PACKAGES = "usr/lib/python3/dist-packages"
SDK_VERSION = "RKNN VERSION:\n  API: emulated 2.3.2\n  DRV: driver: emulated 0.9.8"

NpuWith = Callable[..., Npu]


@contextmanager
def boards_with_lite() -> Iterator[NpuWith]:
    """``npu_with(fault)``: the NPU of an emulated board whose Lite2 has that fault."""
    make_root = emulator.make_root
    opened: dict[str, tuple[BoardSession, Path]] = {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        folders: list[Path] = []

        def with_the_package(folder: Path, *arguments: Any) -> None:
            make_root(folder, *arguments)
            folders.append(folder / PACKAGES)
            shutil.copytree(STAND_IN, folders[-1])

        patch.setattr(emulator, "make_root", with_the_package)

        def board(soc: str) -> tuple[BoardSession, Path]:
            if soc not in opened:
                described = Board(name="desk", soc=soc, runtime="emulator", seed=1)
                session = stack.enter_context(open_session(described, seed=1))
                assert isinstance(session, BoardSession)
                opened[soc] = (session, folders[-1])
            return opened[soc]

        def npu(fault: str | None = None, sdk_version: str | None = SDK_VERSION, soc: str = "rk3588") -> Npu:
            session, packages = board(soc)
            told = {"options": {"soc": soc, "seed": 1}, "fault": fault, "sdk_version": sdk_version}
            (packages / "stand_in.json").write_text(json.dumps(told))
            return Npu(session, ItemRecord("test", (), 7), 7)

        yield npu

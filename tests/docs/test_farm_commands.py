"""What docs/farms.md has one type to set a labgrid farm up, at a real coordinator and exporter."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from labgrid_farm import Farm, labgrid_scripts
from markdown_blocks import CLONE, blocks, commands, spans

PAGE = CLONE / "docs" / "farms.md"
COORDINATOR = "farm.example:20408"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    """A coordinator that knows no place yet."""
    scripts = labgrid_scripts()
    if scripts is None:
        pytest.skip("labgrid is not installed; pipx install 'labgrid>=25'")
    empty = Farm(tmp_path, scripts, {}, {})
    (tmp_path / "places.yaml").write_text("{}\n")
    try:
        empty.start_coordinator()
        yield empty
    finally:
        empty.end()


def start(farm: Farm, text: str) -> subprocess.Popen[bytes]:
    """Start a documented command, with this coordinator in the place of the page's."""
    words = shlex.split(text.replace(COORDINATOR, farm.address))
    path = f"{farm.scripts}:{os.environ['PATH']}"
    return subprocess.Popen(words, cwd=farm.folder, env={**os.environ, "PATH": path})


def test_a_place_with_its_board_and_tags_comes_about(farm: Farm) -> None:
    """create, add-match and set-tags, by hand as the page says, and its boards.yaml in an exporter."""
    (table,) = (block.text for block in blocks(PAGE) if "NetworkService:" in block.text)
    (farm.folder / "boards.yaml").write_text(table)
    (exporter,) = (text for _, text in spans(PAGE) if text.startswith("labgrid-exporter "))
    documented = [command.text for block in blocks(PAGE) for command in commands(block)]
    by_hand = [text for text in documented if text.startswith("labgrid-client ")]
    assert [text.split()[5] for text in by_hand] == ["create", "add-match", "set-tags"]
    farm.exporter = start(farm, exporter)
    for text in by_hand:
        assert start(farm, text).wait(timeout=60) == 0, text
    assert eventually(lambda: "192.0.2.7" in farm.client("-p", "opi-1", "show"))
    shown = farm.client("-p", "opi-1", "show")
    assert "bsp=1.3" in shown
    assert "soc=rk3588" in shown
    assert "NetworkService" in shown


def eventually(condition: Callable[[], bool], deadline_s: float = 30.0) -> bool:
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.2)
    return True


def test_the_other_commands_of_labgrid_exist(farm: Farm) -> None:
    named = sorted({text for _, text in spans(PAGE) if text.startswith("labgrid-client ")})
    assert named
    for text in named:
        words = [word for word in shlex.split(text) if word not in ("-p", "PLACE", "--kick")]
        told = farm.client(*words[1:], "--help")
        assert "usage:" in told, text
        assert ("--kick" in text) <= ("--kick" in told), text

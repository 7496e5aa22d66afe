"""What docs/adding.md has one do, done in a copy of the repository with the texts of the page."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from docs.prepared import call
from markdown_blocks import CLONE, Command, blocks, commands

PAGE = CLONE / "docs" / "adding.md"
BLOCKS = list(blocks(PAGE))

# File -> (the line behind which its text goes, how far that is indented); other files get it at their end.
PLACES: Mapping[str, tuple[str, int]] = {
    "pytest_rknpu/inventory/socs.py": ("_TABLE = (", 4),
    "pytest_rknpu/inventory/pinned_clocks.py": (
        "PINNED_CLOCKS: Mapping[str, PinnedClocks] = MappingProxyType(\n    {",
        8,
    ),
    "pytest_rknpu/verdict/requirements.py": ("_TEXTS: Mapping[str, str] = {", 4),
    "pytest_rknpu/inventory/board_table.py: Board": ('frozen=True, extra="forbid", strict=True)', 4),
    "pytest_rknpu/inventory/board_table.py: lease_key": (
        'do too. A board in software belongs to its file.\n        """',
        8,
    ),
    "pytest_rknpu/inventory/key_rules.py": (
        "# key: the key that it depends on, and the values of that one with which it is taken",
        4,
    ),
    "pytest_rknpu/transport/__init__.py": ("_WAYS: Mapping[str, Callable[[Board], Way]] = {", 4),
}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the page changes, imported before the one that is installed."""
    folder = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("pytest_rknpu", "suites", "docs"):
        shutil.copytree(CLONE / name, folder / name, ignore=ignored)
    for name in ("boards.toml", "pyproject.toml"):
        shutil.copy(CLONE / name, folder / name)
    (folder / "home").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def documented(section: str) -> tuple[dict[str, str], list[Command]]:
    """The texts for files, by title, and the commands of a section."""
    text = PAGE.read_text(encoding="utf-8")
    first = text[: text.index(f"\n## {section}\n")].count("\n") + 2
    after = text.find("\n## ", text.index(f"\n## {section}\n") + 1)
    last = text[:after].count("\n") + 1 if after > 0 else text.count("\n") + 1
    own = [block for block in BLOCKS if first < block.line <= last]
    texts = {block.title: block.text for block in own if block.title is not None}
    return texts, [command for block in own for command in commands(block)]


def apply(folder: Path, texts: Mapping[str, str]) -> None:
    """Put each text where the page says."""
    for title, text in texts.items():
        file = folder / title.partition(":")[0]
        if title in PLACES:
            line, indent = PLACES[title]
            replace(file, line, f"{line}\n{textwrap.indent(text.rstrip(), ' ' * indent)}")
        else:
            with file.open("a", encoding="utf-8") as there:
                there.write(f"\n{text}" if file.stat().st_size else text)


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file}: {old!r} is there {text.count(old)} times"
    file.write_text(text.replace(old, new), encoding="utf-8")


def succeeds(folder: Path, command: str, narrowed: str = "") -> str:
    ended = call(command, folder, narrowed)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}"
    return ended.stdout


def test_a_soc(copy: Path) -> None:
    texts, (generate, suites) = documented("A SoC")
    apply(copy, texts)
    wrote = succeeds(copy, generate.text)
    assert "wrote docs/boards.md" in wrote
    assert "| rk9999 | librknnrt | 64 bit | 2 | " in (copy / "docs/boards.md").read_text(encoding="utf-8")
    assert "| rk9999 | highest, if any |" in (copy / "docs/latency.md").read_text(encoding="utf-8")
    assert "2 passed" in succeeds(copy, suites.text, "--requirement SYNC-06")


def test_a_requirement(copy: Path) -> None:
    texts, (sound, broken) = documented("A requirement")
    apply(copy, texts)
    assert "1 passed" in succeeds(copy, sound.text)
    red = call(broken.text, copy)
    assert red.returncode == 1
    assert "not all of it was handed over" in red.stdout
    succeeds(copy, "python docs/generate.py")
    catalogue = (copy / "docs/catalogue.md").read_text(encoding="utf-8")
    assert "| SYNC-17 | a sync of a whole memory hands over all of it | hardware," in catalogue
    assert "test_whole_memory.py: `test_all_of_it_is_handed_over`" in catalogue


DOCKER = """\
#!/bin/sh
# docker exec -i NAME PROGRAM...: what plays the board is a process of this host
[ "$1 $2 $3" = "exec -i rig-1" ] || { echo "Error: No such container: $3" >&2; exit 1; }
shift 3
exec "$@"
"""
BOARD = """\
[[board]]
name = "{name}"
soc = "rk3588"
runtime = "emulator"
transport = "container"
container = "{name}"
python = "{python}"
"""


def test_a_transport(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for docker; a container that is not there is explained."""
    texts, none = documented("A transport")
    assert none == []
    apply(copy, texts)
    table, rules = (
        copy / "pytest_rknpu/inventory/board_table.py",
        copy / "pytest_rknpu/inventory/key_rules.py",
    )
    replace(table, '"adb", "labgrid"]', '"adb", "labgrid", "container"]')
    replace(rules, '"adb", "local"', '"adb", "local", "container"')
    ways = copy / "pytest_rknpu/transport/__init__.py"
    replace(
        ways,
        "from pytest_rknpu.transport.connecting",
        "from pytest_rknpu.transport.container import container_way\nfrom pytest_rknpu.transport.connecting",
    )
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    boards = [BOARD.format(name=name, python=sys.executable) for name in ("rig-1", "gone")]
    (copy / "boards.toml").write_text("\n".join(boards))
    assert "2 passed" in succeeds(copy, "pytest suites --requirement SYNC-06 --board rig-1")
    lost = call("rknpu probe --board gone", copy)
    assert lost.returncode == 1
    assert "No such container" in lost.stdout
    assert "docker exec -i gone" in lost.stdout
    succeeds(copy, "python docs/generate.py")
    page = (copy / "docs/boards-reference.md").read_text(encoding="utf-8")
    assert '| `container` | text | - | `transport = "container"` |' in page

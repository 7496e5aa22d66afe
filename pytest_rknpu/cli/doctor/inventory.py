"""boards.toml and what goes with it: is it right, and has this host what its boards need?"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_rknpu.cli.availability import availability
from pytest_rknpu.cli.doctor.finding import BOARD, Finding, note, ok, problem
from pytest_rknpu.cli.doctor.programs import INSTALL_ADB, INSTALL_LABGRID, INSTALL_SSH
from pytest_rknpu.cli.doctor.reaching import edit
from pytest_rknpu.cli.waivers import stand
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import Board, BoardsFile, load_boards
from pytest_rknpu.toolchain import INSTALL_COMMAND
from pytest_rknpu.toolchain.source import missing_companion
from pytest_rknpu.waivers import State, load_waivers


def read(path: Path) -> tuple[BoardsFile | None, list[Finding]]:
    """The file, None where it cannot be used, and what is to be said of it."""
    where = str(path)
    try:
        file = load_boards(path)
    except ConfigurationError as error:
        return None, list(_wrong(path, str(error).removeprefix(f"{path}: ")))
    counts = ((file.boards, "board"), (file.models, "model"), (file.budgets, "budget"))
    says = ", ".join(f"{len(tables)} [[{kind}]]" for tables, kind in counts if tables)
    found = [ok("boards-file", where, says)]
    for warning in file.warnings:
        place, _, _ = warning.partition(": ")
        found.append(note("boards-file", where, warning, f"edit {path}: {place}"))
    return file, [*found, *_models(file), *_waivers(path.parent / "waivers.toml")]


def _wrong(path: Path, says: str) -> Iterator[Finding]:
    """A finding for each table that is wrong; the sentences about them stand in one line."""
    for sentence in re.split(r"; (?=\[\[)", says):
        place = re.match(r'\[\[\w+\]\] \d+(?: \("[^"]*"\))?(?:, key "[^"]*")?', sentence)
        mend = f"edit {path}{f': {place[0]}' if place else ''}"
        if _is_absent(path):
            mend = f"rknpu init {shlex.quote(str(path.parent))}"
        yield problem("boards-file", str(path), sentence, mend)


def _is_absent(path: Path) -> bool:
    """That it is not there; where this user cannot look, nobody knows."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _models(file: BoardsFile) -> Iterator[Finding]:
    """That their files are there was looked at when the file was read; here, what loads them."""
    for model in file.models:
        reason = missing_companion(model.format.loader) if model.format is not None else None
        if reason is not None:
            says, _, mend = reason.partition(": ")
            yield note("model", f'{file.path}: [[model]] "{model.name}"', says, mend)


def _waivers(path: Path) -> Iterator[Finding]:
    """The waivers.toml that a run with this boards.toml takes, if there is one."""
    if not os.path.exists(path):
        return
    try:
        found = stand(load_waivers(path), None)
    except ConfigurationError as error:
        yield problem("waivers", str(path), str(error).removeprefix(f"{path}: "), f"edit {path}")
        return
    expired = [standing for standing in found if standing.state is State.EXPIRED]
    for standing in expired:
        says = f"{standing.title} ended on {standing.waiver.expires}, and waives nothing any more"
        mend = f"edit {path}: remove [[waiver]] {standing.number}, or look again and give it another day"
        yield note("waivers", str(path), says, mend)
    if not expired:
        yield ok("waivers", str(path), f"{len(found)} [[waiver]], none has expired")


def usable(path: Path, board: Board) -> tuple[bool, list[Finding]]:
    """Whether this host has what the board needs, so that it is worth knocking at; and what it lacks."""
    where, found = f"{BOARD}{board.name}", availability(board)
    power = list(_power(path, board))
    if found.usable is not False:
        knocked_at = board.transport in ("ssh", "adb") or board.runtime == "connected"
        says = "labgrid and ssh are here; a run asks for its place"
        if board.transport != "labgrid":
            says = found.sentence()
        return True, power if knocked_at else [ok("board", where, says), *power]
    reason, mend = str(found.reason), _mend(path, board)
    if board.runtime == "simulator":
        says = f"{reason.partition('; install')[0]}: tests on it are skipped"
        return False, [note("board", where, says, mend), *power]
    return False, [problem("board", where, reason, mend), *power]


def _mend(path: Path, board: Board) -> str:
    """What mends that a board is not available; `availability` looks for the same things in this order."""
    way = board.transport or board.runtime
    if way in ("ssh", "labgrid"):
        if shutil.which("ssh") is None:
            return INSTALL_SSH
        for key, value in (("ssh_config", board.ssh_config), ("key", board.key)):
            if value is not None and not os.path.isfile(value):
                return f'{edit(path, board)} "{key}"'
        return INSTALL_LABGRID
    if way == "local":
        return f'run it on a {board.soc} board, or {edit(path, board)} "transport"'
    installs = {"emulator": "pip install onnx onnxruntime", "adb": INSTALL_ADB}
    return installs.get(way, INSTALL_COMMAND)


def _power(path: Path, board: Board) -> Iterator[Finding]:
    """Of the command that switches a board nothing but its program is told: arguments may be secret."""
    if board.power is None or board.power == "labgrid":
        return
    if shutil.which(board.power.cycle[0]) is None:
        says = f"there is no program {board.power.program}: a board that hangs is not switched"
        mend = f'install {board.power.program}, or {edit(path, board)} "power"'
        yield note("power", f"{BOARD}{board.name}", says, mend)


def none_usable(path: Path, boards: Sequence[Board], hopeless: int) -> Iterator[Finding]:
    """Where every single board is out of the question, nothing can be run, whatever that was called above."""
    if boards and hopeless == len(boards):
        says = f"none of {len(boards)} board{'s' if len(boards) > 1 else ''} can be used from here"
        yield problem(
            "boards", str(path), says, "mend one of those below, or take emulated ones: rknpu init DIR"
        )

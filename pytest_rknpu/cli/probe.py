"""`rknpu probe`: what one board is and runs, and what is missing there, as a table or as JSON."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import BoardError, ConfigurationError, LeaseTimeout
from pytest_rknpu.inventory.wording import did_you_mean, quoted

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board, BoardsFile
    from pytest_rknpu.session.probing import Probed

FORMAT = 1
"""Of the JSON: counted up when a key changes its meaning or goes."""


def board_named(file: BoardsFile, name: str) -> Board:
    """The board of that name. Raises ConfigurationError with the nearest name."""
    boards = {board.name: board for board in file.boards}
    if name not in boards:
        hint = did_you_mean(name, boards) or f"; there are {', '.join(boards)}"
        raise ConfigurationError(f"{file.path} has no board {quoted(name)}{hint}")
    return boards[name]


def look_at(file: BoardsFile, board: Board, *, wait_s: float) -> Probed:
    """Probe ``board`` while nobody else has it: it loads a model, which would disturb a measurement.

    Raises LeaseTimeout, naming the holder, after ``wait_s`` seconds.
    """
    import typer

    from pytest_rknpu.farm.holding import Asking, hold_one
    from pytest_rknpu.farm.lease import this_process
    from pytest_rknpu.session.probing import probe_board, unreachable

    def tell(text: str) -> None:
        typer.echo(text, err=True)

    holder = this_process(f"probe-{os.getpid()}", shlex.join(["rknpu", *sys.argv[1:]]))
    try:
        with hold_one([board], Asking(file.path, holder, wait_s, tell)) as held:
            return probe_board(held.board)
    except LeaseTimeout:
        raise
    except BoardError as error:  # no place of its farm, a lease that was lost
        return unreachable(board, error)


def probed_json(probed: Probed) -> str:
    """Everything as JSON; its keys are those of docs/probe.md."""
    board = probed.board
    document = {
        "format": FORMAT,
        "board": {
            "name": board.name,
            "soc": board.soc,
            "runtime": board.runtime,
            "transport": board.transport,
            "evidence": board.evidence,
        },
        "usable": probed.usable,
        "missing": [vars(problem) for problem in probed.missing],
        "versions": dict(probed.versions),
        "agent": None if probed.agent is None else dict(probed.agent),
        "functions": list(probed.functions),
        "facts": dict(probed.facts),
    }
    return json.dumps(_plain(document), indent=2)


def _plain(value: Any) -> Any:
    """``value`` without half characters, which a board may send and no file can hold."""
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def probed_text(probed: Probed, width: int) -> str:
    """The same for people: versions, what was seen, what is missing with its remedy."""
    from rich.console import Console
    from rich.markup import escape

    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, emoji=False)
    board = probed.board
    verdict = "usable" if probed.usable else "NOT USABLE"
    console.print(
        f"[bold]{escape(board.name)}[/]: {board.soc}, {board.runtime} ({board.evidence}): {verdict}"
    )
    for title, rows in (("versions", _versions(probed)), ("seen", list(_seen(probed)))):
        if rows:
            console.print(_table(title, rows))
    if probed.missing:
        console.print(_missing(probed))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _table(title: str, rows: list[tuple[str, str]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    table.add_column("", overflow="fold")
    for name, text in rows:
        table.add_row(_cell(name), _cell(text))
    return table


def _missing(probed: Probed) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True)
    for title in ("missing", "why", "remedy"):
        table.add_column(title, overflow="fold")
    for problem in probed.missing:
        word = problem.what if problem.needed else f"{problem.what} (not needed by all)"
        table.add_row(_cell(word), _cell(problem.why), _cell(problem.remedy))
    return table


def _cell(text: str) -> Any:
    """One cell, without anything that a terminal would obey: a board's files may hold anything."""
    from rich.text import Text

    return Text("".join(letter if letter.isprintable() else " " for letter in text))


def _versions(probed: Probed) -> list[tuple[str, str]]:
    return [(name, text) for name, text in probed.versions.items() if name != "clocks"]


def _seen(probed: Probed) -> Iterator[tuple[str, str]]:
    """What the facts say beyond versions, in words, as far as they have a value."""
    values = {name: fact["value"] for name, fact in probed.facts.items() if "value" in fact}
    if probed.agent is not None:
        yield "agent", f"Python {probed.agent['python']}, {len(probed.functions)} RKNN functions"
    if "user" in values:
        user = values["user"]
        yield "user", f"{user['name']} (uid {user['uid']}), groups {', '.join(user['groups']) or 'none'}"
    if "device_tree_compatible" in values:
        yield "compatible", ", ".join(values["device_tree_compatible"])
    if "npu_device" in values:
        device = values["npu_device"]
        yield "NPU device", f"{', '.join(device['nodes'])}, driver {device['driver']}"
    if "stand_in" in values:
        yield "no hardware", f"a stand-in for the driver, told by {values['stand_in']['told_by']}"
    if "npu_access" in values:
        yield "NPU access", f"{values['npu_access']['node']} can be opened"
    if "npu_load" in values:
        yield "NPU load", ", ".join(f"{load} %" for load in values["npu_load"])
    if values.get("npu_users"):
        yield "NPU in use by", ", ".join(f"{user['name']} ({user['pid']})" for user in values["npu_users"])
    if "npu_iommu" in values:
        yield "IOMMU", values["npu_iommu"]
    if "thermal" in values:
        zones = [zone for zone in values["thermal"] if zone["millidegrees"] is not None]
        degrees = (f"{zone['type'] or '?'} {zone['millidegrees'] / 1000:.0f} °C" for zone in zones)
        yield "thermal", ", ".join(degrees)
    if values.get("npu_kernel_log"):
        yield "kernel's last word", values["npu_kernel_log"][-1]["text"]

"""The page as HTML: one file that needs no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history.collecting import Collected
from pytest_rknpu.history.overview import History
from pytest_rknpu.history.page import content
from pytest_rknpu.history.page.figures import trend_figure
from pytest_rknpu.history.text import SOFTWARE, head_lines
from pytest_rknpu.report.page.parts import Figure, environment, part, style_sheet, unique_ids
from pytest_rknpu.report.whole_file import write_whole

_PACKAGE = "pytest_rknpu.history.page"
MOST_FIGURES = 200
"""A drawing takes a tenth of a second and 20 KiB; further lines have their table."""


@dataclass(frozen=True)
class Drawn:
    """A plot and its drawing, None beyond the most that one page has."""

    plot: content.Plot
    figure: Figure | None


def write_page(path: Path, history: History, collected: Collected) -> None:
    """Write the page. Raises ConfigurationError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page_text(history, collected))
    except OSError as error:
        raise ConfigurationError(f"--html {path}: {error.strerror or error}") from None


def page_text(history: History, collected: Collected) -> str:
    """The whole page."""
    parts = [content.board_part(history, board, number) for number, board in enumerate(history.boards)]
    plots = [content.plots(history, board) for board in history.boards]
    left = MOST_FIGURES
    drawn = []
    for number, own in enumerate(plots):
        drawn.append(_drawn(history, own, left, f"b{number}-"))
        left = max(0, left - len(own))
    return (
        environment(_PACKAGE)
        .get_template("history.html")
        .render(
            runs=history.runs,
            head=next(iter(head_lines(history, collected))),
            left_out=collected.left_out,
            boards=list(zip(parts, drawn, strict=True)),
            undrawn=sum(one.figure is None for own in drawn for one in own),
            flaky_columns=content.FLAKY_COLUMNS,
            point_columns=content.POINT_COLUMNS,
            software=SOFTWARE,
            style=style_sheet(),
            script=part(_PACKAGE, "history.js"),
        )
    )


def _drawn(history: History, plots: list[content.Plot], most: int, prefix: str) -> list[Drawn]:
    figures = unique_ids([trend_figure(plot, history.runs) for plot in plots[:most]], prefix)
    return [Drawn(plot, figures[place] if place < len(figures) else None) for place, plot in enumerate(plots)]

"""The page as HTML: jinja2 fills one template, with styles, script and drawings inside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_rknpu.report.page import content
from pytest_rknpu.report.page.figures import latency_figures
from pytest_rknpu.report.page.memory_maps import COLUMNS, DrawnMap, drawn, memory_maps
from pytest_rknpu.report.page.parts import environment, part, style_sheet, unique_ids
from pytest_rknpu.report.results import Results
from pytest_rknpu.report.whole_file import write_whole
from pytest_rknpu.verdict import REQUIREMENTS, Outcome

FILE_NAME = "report.html"
_PACKAGE = "pytest_rknpu.report.page"


def write_page(folder: Path, results: Results) -> Path:
    """Write ``folder/report.html``; raises OSError as files do."""
    path = folder / FILE_NAME
    write_whole(path, page_text(results))
    return path


def page_text(results: Results) -> str:
    """The whole page. Raises ConfigurationError for samples that are none."""
    boards = content.board_columns(results)
    template = environment(_PACKAGE).get_template("page.html")
    return template.render(
        run=results.run,
        torn=results.torn,
        boards=boards,
        versions=content.version_rows(boards),
        rows=content.requirement_rows(results, boards),
        missing=_missing(results),
        failures=content.failures(results),
        figures=unique_ids(list(latency_figures(results.tests))),
        tables=content.tables(results.tests),
        maps=_maps(results),
        map_columns=COLUMNS,
        outcomes=[str(outcome) for outcome in Outcome],
        details=content.details(results.tests, boards),
        software=content.SOFTWARE,
        style=style_sheet(),
        script=part(_PACKAGE, "page.js"),
    )


def _maps(results: Results) -> list[DrawnMap]:
    found = [drawn(one) for one in memory_maps(results.tests)]
    figures = unique_ids([one.figure for one in found], "m")
    return [replace(one, figure=figure) for one, figure in zip(found, figures, strict=True)]


def _missing(results: Results) -> list[str]:
    """Requirements of the catalogue that no test of the run was about."""
    tried = {id for result in results.tests for id in result.requirement}
    return [id for id in REQUIREMENTS if id not in tried]

"""The page as HTML: jinja2 fills one template, with styles, script and drawings inside it."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from pytest_rknpu.report.page import content
from pytest_rknpu.report.page.figures import latency_figures, unique_ids
from pytest_rknpu.report.results import Results
from pytest_rknpu.report.whole_file import write_whole
from pytest_rknpu.verdict import REQUIREMENTS, Outcome

FILE_NAME = "report.html"


def write_page(folder: Path, results: Results) -> Path:
    """Write ``folder/report.html``; raises OSError as files do."""
    path = folder / FILE_NAME
    write_whole(path, page_text(results))
    return path


def page_text(results: Results) -> str:
    """The whole page. Raises ConfigurationError for samples that are none."""
    import jinja2

    boards = content.board_columns(results)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["script_json"] = _script_json
    return environment.get_template("page.html").render(
        run=results.run,
        torn=results.torn,
        boards=boards,
        versions=content.version_rows(boards),
        rows=content.requirement_rows(results, boards),
        missing=_missing(results),
        failures=content.failures(results),
        figures=unique_ids(list(latency_figures(results.tests))),
        tables=content.tables(results.tests),
        outcomes=[str(outcome) for outcome in Outcome],
        details=content.details(results.tests, boards),
        software=content.SOFTWARE,
        style=_part("page.css"),
        script=_part("page.js"),
    )


def _missing(results: Results) -> list[str]:
    """Requirements of the catalogue that no test of the run was about."""
    tried = {id for result in results.tests for id in result.requirement}
    return [id for id in REQUIREMENTS if id not in tried]


def _part(name: str) -> str:
    return resources.files("pytest_rknpu.report.page").joinpath(name).read_text(encoding="utf-8")


def _script_json(value: object) -> str:
    """JSON that can stand in a script element: nothing in it ends that element or begins a comment."""
    import markupsafe

    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return markupsafe.Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))

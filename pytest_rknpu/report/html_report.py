"""Our part of pytest-html's report, registered where one is asked for (``--html``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableSequence
from html import escape
from typing import Any

import pytest

from pytest_rknpu.report.attachments import attachments_of

_COLUMNS = ("outcome", "board", "evidence", "requirement")
_FIRST = 1  # behind pytest-html's own result, which knows no more than pytest's three outcomes


class HtmlReport:
    """Columns for what the matrix knows, and below each test its properties and attachments."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: MutableSequence[str]) -> None:
        """A title for each column."""
        titles = (
            f'<th class="sortable" data-column-type="{name}">{name.capitalize()}</th>' for name in _COLUMNS
        )
        cells[_FIRST:_FIRST] = titles

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: Any, cells: MutableSequence[str]) -> None:
        """What they say of one test; nothing where it is not ours."""
        properties = properties_in(report)
        said = (escape(properties.get(name, "")) for name in _COLUMNS)
        cells[_FIRST:_FIRST] = [
            f'<td class="col-{name}">{text}</td>' for name, text in zip(_COLUMNS, said, strict=True)
        ]

    @pytest.hookimpl(tryfirst=True)  # before pytest-html takes the report in
    def pytest_runtest_logreport(self, report: Any) -> None:
        """The last report of a test carries what is shown below it."""
        carried = getattr(report, "rknpu", None)
        if carried is not None and carried["result"] is not None:
            report.extras = [*getattr(report, "extras", []), *_extras(report, carried["result"]["message"])]


def properties_in(report: Any) -> Mapping[str, str]:
    """What a report of a test of ours says of itself; empty for others."""
    return dict(report.user_properties) if hasattr(report, "rknpu") else {}


def _extras(report: Any, message: str) -> Iterator[dict[str, str | None]]:
    from pytest_html import extras

    rows = (
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in properties_in(report).items()
        if value
    )
    yield extras.html(f'<table class="rknpu">{"".join(rows)}</table>')
    for attachment in attachments_of(message, report.sections):
        yield extras.text(attachment.text, name=attachment.name)

"""What pages of this package share: the template engine, the styles, drawings as elements of a page."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Figure:
    """A drawing with the words that stand for it where it cannot be seen."""

    title: str
    words: str
    svg: str


def part(package: str, name: str) -> str:
    """A template, style sheet or script that lies in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """The styles of all pages."""
    return part("pytest_rknpu.report.page", "page.css")


def environment(package: str) -> jinja2.Environment:
    """Templates of a package. Everything that is put in is escaped; a name that is not there is an error."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: part(package, name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    made.filters["script_json"] = _script_json
    return made


def _script_json(value: object) -> str:
    """JSON that can stand in a script element: nothing in it ends that element or begins a comment."""
    import markupsafe

    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return markupsafe.Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


def svg_of(canvas: Any) -> str:
    """A matplotlib drawing as an element of a page: no XML head, and black is the colour of the text."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rknpu"}):
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return (
        text[text.index("<svg") :].replace("#000000", "currentColor").replace("fill: #ffffff", "fill: none")
    )


def unique_ids(figures: Sequence[Figure], prefix: str = "f") -> list[Figure]:
    """The same drawings with ids that no other drawing of the page has."""
    return [
        replace(figure, svg=re.sub(r'((?:id="|href="#|url\(#))', rf"\g<1>{prefix}{number}-", figure.svg))
        for number, figure in enumerate(figures)
    ]

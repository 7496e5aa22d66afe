"""The code blocks and the code spans of a Markdown page, fenced and indented ones alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

CLONE = Path(__file__).parents[1]
PAGES = (CLONE / "README.md", *sorted((CLONE / "docs").glob("*.md")))

# What an indented block is, by its first line: it cannot name its language.
_INDENTED = (
    (re.compile(r"\[\["), "toml"),
    (re.compile(r"\$ "), "console"),
    (re.compile(r"(from|import|@pytest|def) "), "python"),
    (re.compile(r"([A-Z_]+=\S+ )*(\S*/)?(rknpu|pytest|python3?|pip|jq|mkdocs) "), "sh"),
)


@dataclass(frozen=True)
class Block:
    """One code block. ``language`` is what the fence says, for an indented one what it looks like, or empty.

    ``line`` counts from 1; ``title`` is the file that the fence names.
    """

    page: str
    line: int
    language: str
    title: str | None
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command line of a page, and the output shown below it (None where none is)."""

    place: str
    text: str
    output: str | None = None


def blocks(page: Path) -> Iterator[Block]:
    """All code blocks of a page, in its order."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        language, _, rest = token.info.partition(" ")
        title = re.search(r'title="([^"]*)"', rest)
        yield Block(
            page.name,
            token.map[0] + 1,
            language if token.type == "fence" else _guess(token.content),
            title[1] if title else None,
            token.content,
        )


def spans(page: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of all code spans of a page."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        if token.type == "inline":
            line = token.map[0] + 1 if token.map else 0
            yield from (
                (line, child.content) for child in token.children or () if child.type == "code_inline"
            )


def commands(block: Block) -> Iterator[Command]:
    """The command lines of a block: all of a script, those behind ``$`` of a console.

    A backslash at its end, an open quote and a here-document continue a command.
    """
    if block.language == "sh":
        yield from (Command(block.place, text) for text in _script(block.text.splitlines()))
    elif block.language == "console":
        for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            first, *rest = entry.splitlines()
            more = [line[2:] for line in rest if line.startswith("> ")]
            shown = "\n".join(line for line in rest if not line.startswith("> "))
            (text,) = _script([first, *more])
            yield Command(block.place, text, f"{shown}\n" if shown else None)


def _guess(text: str) -> str:
    first = text.lstrip("\n").splitlines()[0]
    return next((language for looks, language in _INDENTED if looks.match(first)), "")


def _script(lines: list[str]) -> Iterator[str]:
    rest = iter(lines)
    for line in rest:
        text = without_comment(line)
        if not text:
            continue
        here = re.search(r"<<-?\s*(['\"]?)(\w+)\1", text)
        end = here[2] if here else None
        while text.endswith("\\") or (end and text.splitlines()[-1] != end):
            text += f"\n{next(rest)}"
        yield text


def without_comment(line: str) -> str:
    """A line of a script without the comment at its end; a ``#`` within a word or quotes is none."""
    return re.sub(r"('[^']*'|\"[^\"]*\")|(?:^|\s+)#(?: .*|$)", lambda found: found[1] or "", line).strip()

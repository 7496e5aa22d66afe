"""What a result has to show beyond its properties: the bytes that differ, and what the runtime logged.

For other reports (pytest-html, allure-pytest); neither is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_rknpu.report.hexdumps import dumps

_RUNTIME_LOG = "Captured runtime log"
_ROW = 16


@dataclass(frozen=True)
class Attachment:
    """A text with a name of its own within its test."""

    name: str
    text: str


def attachments_of(message: str, sections: Iterable[tuple[str, str]]) -> list[Attachment]:
    """Of one test: ``message`` is its result's, ``sections`` are those of its last report."""
    found = [*_hexdumps(message)]
    logged = [text for title, text in sections if title.startswith(_RUNTIME_LOG)]
    return [*found, Attachment("runtime log", "".join(logged))] if logged else found


def _hexdumps(message: str) -> Iterator[Attachment]:
    """One for each place where a message has both sides in hexadecimal."""
    lines, number = message.split("\n"), 0
    for head, upper, lower in zip(lines, lines[1:], lines[2:], strict=False):
        found = dumps(upper, lower)
        if found is None:
            continue
        try:
            expected, actual = map(bytes.fromhex, found)
        except ValueError:  # words that look like it
            continue
        number += 1
        name = "differing bytes" if number == 1 else f"differing bytes, {number}"
        yield Attachment(name, "\n".join([head, "", *_side_by_side(expected, actual)]) + "\n")


def _side_by_side(expected: bytes, actual: bytes) -> Iterator[str]:
    """Rows of both, one below the other, and marks below the bytes that differ."""
    for start in range(0, max(len(expected), len(actual)), _ROW):
        upper, lower = expected[start : start + _ROW], actual[start : start + _ROW]
        yield f"{start:04x}  expected  {upper.hex(' ')}"
        yield f"      actual    {lower.hex(' ')}"
        marks = " ".join("^^" if pair[0] != pair[1] else "  " for pair in _pairs(upper, lower)).rstrip()
        if marks:
            yield f"                {marks}"


def _pairs(upper: bytes, lower: bytes) -> Iterator[tuple[int | None, int | None]]:
    for index in range(max(len(upper), len(lower))):
        yield _at(upper, index), _at(lower, index)


def _at(data: Sequence[int], index: int) -> int | None:
    return data[index] if index < len(data) else None

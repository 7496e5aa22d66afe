"""Messages with two hexdumps, one above the other: which bytes differ is marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_rknpu.report.hexdumps import dumps

_BYTE = re.compile(r"[0-9a-f]{1,2}| ")


@dataclass(frozen=True)
class Bit:
    """A piece of a message; ``differs`` where its bytes are not those of the other dump."""

    text: str
    differs: bool = False


def marked(message: str) -> tuple[Bit, ...]:
    """The message in pieces that make up the whole again."""
    lines = message.split("\n")
    bits: list[Bit] = []
    place = 0
    while place < len(lines):
        following = lines[place + 1] if place + 1 < len(lines) else ""
        pair = _dumps(lines[place], following)
        end = "\n" if place + (2 if pair else 1) < len(lines) else ""
        if pair:
            bits += [*_line(lines[place], *pair), Bit("\n"), *_line(following, *reversed(pair)), Bit(end)]
            place += 2
        else:
            bits.append(Bit(lines[place] + end))
            place += 1
    return tuple(bit for bit in bits if bit.text)


def _dumps(line: str, following: str) -> tuple[str, str] | None:
    found = dumps(line, following)
    return None if found is None or _shape(found[0]) != _shape(found[1]) else found


def _shape(dump: str) -> list[int]:
    """How many digits each group has: dumps of one shape stand byte over byte."""
    return [len(group) for group in dump.split(" ")]


def _line(line: str, own: str, other: str) -> Iterator[Bit]:
    """A line with one of the dumps, in runs of bytes that are alike or not."""
    yield Bit(line.removesuffix(own))
    text, differs = "", False
    for mine, theirs in zip(_BYTE.findall(own), _BYTE.findall(other), strict=True):
        unlike = mine != theirs
        if unlike is not differs:
            yield Bit(text, differs)
            text, differs = "", unlike
        text += mine
    yield Bit(text, differs)

"""Where a message shows bytes that differ: a line with what was expected, and below it what was there."""

from __future__ import annotations

import re

_EXPECTED, _ACTUAL = (
    re.compile(rf"\s*{word} +(?P<dump>[0-9a-f]{{2}}[0-9a-f ]*)") for word in ("expected", "actual")
)


def dumps(line: str, following: str) -> tuple[str, str] | None:
    """The two dumps in hexadecimal, as they stand there; None where these lines have none."""
    expected, actual = _EXPECTED.fullmatch(line), _ACTUAL.fullmatch(following)
    return None if expected is None or actual is None else (expected["dump"], actual["dump"])

"""The lines of the toolkit's output: cleaned, and those that tell of a failure."""

from __future__ import annotations

import re

#: Colours, and the carriage returns by which progress bars overwrite themselves.
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_PROGRESS = re.compile(r"it/s\]")
_MARK = re.compile(r"^[EWID] ")
#: Ends each failing log, says nothing of the reason.
_BANNER = re.compile(r"^E rknn-toolkit2 version:")
#: Printed by successful builds too (seen with 2.5.0).
_HARMLESS = re.compile(r"Unkown op target: 0")
LIMIT = 6


def clean_lines(log: str) -> list[str]:
    """The lines of a log without colours, progress bars and empty lines."""
    lines = _ESCAPE.sub("", log).replace("\r", "\n").split("\n")
    return [line.rstrip() for line in lines if line.strip() and not _PROGRESS.search(line)]


def numbered_lines(log: str) -> list[tuple[int, str]]:
    """Every line with its number in the file, without colours and without what a progress bar overwrote."""
    lines = _ESCAPE.sub("", log).split("\n")
    return [(number, line.rstrip().rpartition("\r")[2]) for number, line in enumerate(lines, start=1)]


def error_lines(log: str, limit: int = LIMIT) -> list[str]:
    """The toolkit's last E lines, at most ``limit``; each with the reason that ends a traceback below it."""
    found: list[str] = []
    lines = clean_lines(log)
    for number, line in enumerate(lines):
        if line.startswith("E ") and not _BANNER.match(line) and not _HARMLESS.search(line):
            found.append(_with_reason(line, lines[number + 1 :]))
    return list(dict.fromkeys(found))[-limit:]


def _with_reason(line: str, following: list[str]) -> str:
    """An E line that opens a traceback is worth its last line: "E build: Traceback ..." names no reason."""
    if "Traceback" not in line:
        return line
    reason = ""
    for text in following:
        if _MARK.match(text):
            break
        if re.match(r"\w+(Error|Exception)\b", text):
            reason = text
    return f"{line.split('Traceback')[0].rstrip()} {reason}".strip() if reason else line

"""Writes what the documentation takes from the code: all generated tables, and docs/catalogue.md.

    python docs/generate.py

Run it from any folder. `tests/docs/test_generated_pages.py` fails where a page is not what this writes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest

from pytest_rknpu.farm.collecting import OURS, Ours
from pytest_rknpu.inventory.reference import updated
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.verdict import CHAPTERS, REQUIREMENTS, lacking

DOCS = Path(__file__).resolve().parent
CLONE = DOCS.parent

# One board for each kind that answers, on SoCs that differ most: several cores, sparse, the mini runtime.
SOCS = ("rk3588", "rk3576", "rv1106")
KINDS = {
    "emulator": 'runtime = "emulator"',
    "simulator": 'runtime = "simulator"',
    "vendor-runtime": 'runtime = "librknnrt"\ntransport = "local"\nstand_in = true',
    "hardware": 'host = "192.0.2.7"',
    "connected": 'runtime = "connected"',
}
MODEL = 'path = "own.onnx"\ncalibration = "own.npz"\nsparse = 0'

HEADER = """\
# The catalogue of requirements

Ids are stable: tests name them, reports group by them, waivers refer to them. A test claims a requirement by
the marker `requirement`; this page is made from these markers (`python docs/generate.py`).

"Evidence" is the kinds of board that at least one of the tests is for; what each is worth is told in
[verdicts.md](verdicts.md#kinds-of-evidence). "connected" are boards without Python that RKNN-Toolkit2 drives
([user-models.md](user-models.md#connected-boards)). A test may still find on a board that it does not apply
there, by what SoC, runtime or toolkit lack, and is then skipped with the proof.
"""


@dataclass
class Claims:
    """A pytest plugin that notes which test claims which requirement, and on which kinds of board it runs."""

    found: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            ours = item.stash.get(OURS, None)
            if ours is not None:
                self._note(item.nodeid.partition("[")[0], ours)

    def _note(self, test: str, ours: Ours) -> None:
        for requirement in ours.record.requirements:
            kinds = self.found.setdefault(requirement, {}).setdefault(test, set())
            kinds.update(_kinds(ours))


def _kinds(ours: Ours) -> Iterator[str]:
    """The kind of the item's board, unless a need that is known beforehand keeps it from running there."""
    board = ours.board
    if board is None or ("time" in ours.needs and board.without_time):
        return
    if lacking(ours.needs, find_soc(board.soc), board.evidence) is None:
        yield "connected" if board.runtime == "connected" else board.evidence


def claims() -> dict[str, dict[str, set[str]]]:
    """Requirement to the tests of suites/ that claim it, to the kinds of board that each runs on."""
    found = Claims()
    with tempfile.TemporaryDirectory() as folder:
        boards = Path(folder) / "boards.toml"
        boards.write_text("\n".join(_boards()), encoding="utf-8")
        for name in ("own.onnx", "own.npz"):  # nothing of them is read before a test runs
            (boards.parent / name).write_bytes(b"")
        options = ["--collect-only", "-qqq", "-p", "no:cacheprovider", "--boards", str(boards)]
        with redirect_stdout(StringIO()) as output:
            code = pytest.main([str(CLONE / "suites"), *options, "--rootdir", str(CLONE)], [found])
    if code != pytest.ExitCode.OK:
        raise SystemExit(f"suites/ cannot be collected:\n{output.getvalue()}")
    return found.found


def _boards() -> Iterator[str]:
    for soc in SOCS:
        for kind, keys in KINDS.items():
            yield f'[[board]]\nname = "{kind}-{soc}"\nsoc = "{soc}"\n{keys}\n'
    yield f'[[model]]\nname = "own"\n{MODEL}\n'


def catalogue() -> str:
    """The text of docs/catalogue.md."""
    found = claims()
    return HEADER + "".join(_chapter(chapter, found) for chapter in CHAPTERS)


def _chapter(name: str, found: dict[str, dict[str, set[str]]]) -> str:
    chapter = CHAPTERS[name]
    lines = [f"\n## {name}: {chapter.title}\n"]
    if chapter.guide:
        lines.append(f"RKNN SDK V2.5.0 user guide: {chapter.guide}.\n")
    lines += ["| id | requirement | evidence | tests in `suites/` |", "|---|---|---|---|"]
    for requirement in REQUIREMENTS.values():
        if requirement.chapter == name:
            tests = found.get(requirement.id, {})
            kinds = _evidence(set().union(*tests.values()))
            text = requirement.text.replace("|", "\\|")
            lines.append(f"| {requirement.id} | {text} | {kinds} | {_tests(tests)} |")
    return "\n".join(lines) + "\n"


def _evidence(kinds: set[str]) -> str:
    silicon = [kind for kind in ("hardware", "connected") if kind in kinds]
    others = [kind for kind in ("vendor-runtime", "simulator", "emulator") if kind in kinds]
    words = [{"hardware": "hardware", "connected": "hardware (connected)"}[kind] for kind in silicon]
    return ", ".join([*words, *others]) or "-"


def _tests(tests: Iterable[str]) -> str:
    by_file: dict[str, list[str]] = {}
    for test in tests:
        file, _, name = test.removeprefix("suites/").partition("::")
        by_file.setdefault(file, []).append(f"`{name}`")
    return "; ".join(f"{file}: {', '.join(names)}" for file, names in by_file.items()) or "none"


def pages() -> dict[Path, str]:
    """What each page that has generated parts is to say."""
    marked = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))}
    written = {page: updated(text) for page, text in marked.items() if "<!-- generated: " in text}
    return {**written, DOCS / "catalogue.md": catalogue()}


def main() -> int:
    for page, text in pages().items():
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            print(f"wrote {page.relative_to(CLONE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""results.jsonl: what is written is what the schema says and what is read back, even after a kill."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin.schemas import results_validator
from report.samples import RUN, result

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.report.results import ResultsWriter, read_results
from pytest_rknpu.verdict import Measurement, Outcome, sendable

EVERYTHING = [
    *(result(outcome=outcome, nodeid=f"t.py::test_{outcome}[rk-one]") for outcome in Outcome),
    result(board=None, soc=None, evidence=None, requirement=(), versions={}, measurements=()),
    result(message="two\nlines \x00 \ud800 \u2028 ü", outcome=Outcome.FAIL, notes=("a", "b")),
    result(
        measurements=tuple(Measurement(f"m{n}", value, "dB") for n, value in enumerate([1, 1.5, "inf", True]))
    ),
]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file with every kind of record."""
    path = tmp_path / "results.jsonl"
    writer = ResultsWriter(path, RUN)
    for each in EVERYTHING:
        writer.write(each)
    writer.close()
    writer.close()
    return path


def test_what_was_written_is_read_back(written: Path) -> None:
    results = read_results(written)
    assert results.run == RUN
    # A half character comes back as an escape: no file and no database could take it further.
    whole = [replace(one, message=sendable(one.message)) for one in EVERYTHING]
    assert list(results.tests) == whole
    assert not results.torn


def test_each_line_follows_the_schema(written: Path) -> None:
    validator = results_validator()
    lines = written.read_text().splitlines()
    assert len(lines) == len(EVERYTHING) + 1
    for line in lines:
        validator.validate(json.loads(line))


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "passed"},
        {"seed": -1},
        {"evidence": "silicon"},
        {"requirement": ["SYNC-01", "SYNC-01"]},
        {"requirement": "SYNC-01"},
        {"measurements": [{"name": "", "value": 1, "unit": ""}]},
        {"board": None},
        {"soc": None},
        {"duration_s": "1"},
        {"outcome": "fail", "message": ""},
        {"surprise": 1},
    ],
)
def test_the_schema_refuses(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        results_validator().validate({**result().plain(), **change})


@pytest.mark.parametrize("key", list(result().plain()))
def test_the_schema_misses_each_key(key: str) -> None:
    table = result().plain()
    del table[key]
    with pytest.raises(jsonschema.ValidationError):
        results_validator().validate(table)


def test_a_line_is_there_as_soon_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    writer = ResultsWriter(path, RUN)
    for count, each in enumerate(EVERYTHING, start=1):
        writer.write(each)
        assert len(read_results(path).tests) == count
    writer.close()


@given(part=st.floats(0, 1))
def test_a_file_cut_anywhere_keeps_its_whole_lines(
    part: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "results.jsonl"
    writer = ResultsWriter(path, RUN)
    for each in EVERYTHING[:3]:
        writer.write(each)
    writer.close()
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    cut = round(part * len(whole))
    path.write_bytes(whole[:cut])
    if cut < first:
        with pytest.raises(ConfigurationError, match="no complete line"):
            read_results(path)
        return
    results = read_results(path)
    assert list(results.tests) == EVERYTHING[: whole[:cut].count(b"\n") - 1]
    assert results.torn == (not whole[:cut].endswith(b"\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no complete line"),
        ("{}\n", "line 1"),
        ("[]\n", "line 1"),
        ("[" * 100_000 + "\n", "line 1"),
        ('{"schema": "pytest-rknpu/results-9"}\n', "results-9"),
    ],
)
def test_what_is_no_results_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"x\.jsonl") as refused:
        read_results(path)
    assert words in str(refused.value)


def test_a_bad_line_in_the_middle_is_not_passed_over(written: Path) -> None:
    lines = written.read_text().splitlines(keepends=True)
    written.write_text("".join([*lines[:3], lines[3][:40] + "\n", *lines[4:]]))
    with pytest.raises(ConfigurationError, match="line 4"):
        read_results(written)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.jsonl"):
        read_results(tmp_path / "gone.jsonl")


def test_the_documentation_names_every_key() -> None:
    text = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    schema = results_validator().schema["$defs"]
    assert named == {*schema["run"]["properties"], *schema["test"]["properties"]}

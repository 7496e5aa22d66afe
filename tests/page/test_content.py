"""What the page says, without a browser."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import html
from page.pages import HEXDUMP, NASTY, large, small

from pytest_rknpu.cli.app import run
from pytest_rknpu.report.page import page_text, write_page
from pytest_rknpu.report.page.content import board_columns, replay_of, requirement_rows, version_rows
from pytest_rknpu.report.results import ResultsWriter


def test_versions_that_differ_are_marked() -> None:
    rows = {row.title: row for row in version_rows(board_columns(small()))}
    assert rows["runtime"].values == ("2.3.2", "2.3.0")
    assert rows["runtime"].differs
    assert not rows["driver"].differs


def test_every_requirement_has_its_text_and_source() -> None:
    results = small()
    rows = {row.id: row for row in requirement_rows(results, board_columns(results))}
    assert rows["SYNC-01"].text.startswith("after CPU writes")
    assert "4.1.6" in rows["SYNC-01"].source
    assert [str(cell) for cell in rows["SYNC-01"].cells] == ["pass", "fail"]


def test_the_page_holds_what_people_look_for() -> None:
    text = page_text(small())
    document = html.fromstring(text)
    shown = document.text_content()
    for words in (HEXDUMP, "known until 0.9.9", "27.1", "75%", "p50 2.100 ms", "62", "2027-01-31"):
        assert words in shown, words
    assert "says nothing about silicon" in shown
    assert document.xpath("//figure//*[local-name()='svg']")
    assert {anchor.get("href")[1:] for anchor in document.xpath("//nav//a")} <= set(document.xpath("//@id"))
    ids = document.xpath("//@id")
    assert len(ids) == len(set(ids))


def test_nothing_is_fetched_and_nothing_escapes() -> None:
    text = page_text(small())
    document = html.fromstring(text)
    assert not document.xpath("//link | //img | //iframe | //script[@src]")
    assert "url(http" not in text
    assert "@import" not in text
    assert NASTY not in text
    assert len(document.xpath("//script")) == 3


def test_a_failure_names_the_command_that_replays_it() -> None:
    results = small()
    failed = next(test for test in results.tests if test.message == HEXDUMP)
    words = shlex.split(replay_of(results.run, failed))
    assert words[:4] == ["rknpu", "run", "--rknpu-only", failed.nodeid]
    assert words[words.index("--boards") + 1] == "my boards.toml"
    assert words[words.index("--rknpu-fault") + 1] == "sync-to-device-dropped"
    assert words[words.index("--rknpu-seed") + 1] == "7"
    assert "-n" not in words


def test_a_replay_on_equal_boards_chooses_them_as_the_run_did() -> None:
    """`--board rk3588`, the pool's name, matched no board of boards.toml."""
    results = small()
    failed = next(test for test in results.tests if test.message == HEXDUMP)
    command = f"{results.run.command} --rknpu-per soc --tag site=lab --soc=rk3588 -n 4"
    words = shlex.split(replay_of(replace(results.run, command=command), replace(failed, ran_on="board-7")))
    by_filter = shlex.split(replay_of(results.run, replace(failed, ran_on="place-7")))
    assert by_filter[by_filter.index("--board") + 1] == failed.board
    assert words[words.index("--rknpu-per") + 1] == "soc"
    assert words[words.index("--tag") + 1] == "site=lab"
    assert "--soc=rk3588" in words
    assert "--board" not in words
    assert "-n" not in words


def test_a_torn_run_says_so() -> None:
    assert "The run was cut off" in page_text(large(2, 2))
    assert "The run was cut off" not in page_text(small())


def test_rknpu_report_writes_it_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = small()
    writer = ResultsWriter(tmp_path / "results.jsonl", results.run)
    for one in results.tests:
        writer.write(one)
    writer.close()
    assert run(["report", str(tmp_path)]) == 0
    assert "report.html" in capsys.readouterr().out
    assert "SYNC-07" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run(["report", str(tmp_path / "results.jsonl"), "--output", str(tmp_path / "other")]) == 0
    assert (tmp_path / "other" / "report.html").exists()
    assert run(["report", str(tmp_path / "gone")]) == 2


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError, match=r"report\.html"):
        write_page(tmp_path, small())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

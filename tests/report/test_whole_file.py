"""Files are written whole or not at all, and nothing else is touched."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pytest_rknpu.report.whole_file import write_whole


def test_a_file_beside_it_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "page.unfinished"
    mine.write_text("mine")
    write_whole(tmp_path / "page.html", "new")
    assert sorted(os.listdir(tmp_path)) == ["page.html", "page.unfinished"]
    assert mine.read_text() == "mine"


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "new")
        assert os.read(end, 100) == b"new"
    finally:
        os.close(end)
    assert pipe.is_fifo()


@pytest.mark.parametrize("place", [".", "/"])
def test_a_folder_is_refused_as_files_do(place: str) -> None:
    with pytest.raises(IsADirectoryError):
        write_whole(Path(place), "new")


def test_half_characters_are_written_as_escapes(tmp_path: Path) -> None:
    write_whole(tmp_path / "page", "a\udcffb")
    assert (tmp_path / "page").read_text() == "a\\udcffb"


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    write_whole(tmp_path / ("n" * 255), "new")
    assert os.listdir(tmp_path) == ["n" * 255]


def test_an_interrupt_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*names: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "page").write_text("old")
    monkeypatch.setattr("pytest_rknpu.report.whole_file.os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "page", "new")
    assert os.listdir(tmp_path) == ["page"]
    assert (tmp_path / "page").read_text() == "old"


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    contents = ["a" * 100_000, "b" * 100_000]
    failed: list[OSError] = []

    def write(content: str) -> None:
        try:
            for _ in range(50):
                write_whole(tmp_path / "page", content)
        except OSError as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert failed == []
    assert (tmp_path / "page").read_text() in contents

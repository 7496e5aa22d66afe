"""`rknpu bundle` and `rknpu verify`: whatever is changed, missing or contradictory in an archive is named."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from page.pages import small

from pytest_rknpu.cli.app import run
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.report.bundle import problems_of, read_bundle, read_must_pass
from pytest_rknpu.report.junit import write_junit
from pytest_rknpu.report.public_boards import public_table
from pytest_rknpu.report.results import Results, ResultsWriter
from pytest_rknpu.verdict import Outcome


def green() -> Results:
    """The small run without what is red in it."""
    results = small()
    kept = tuple(test for test in results.tests if test.outcome in (Outcome.PASS, Outcome.SKIP))
    return Results(replace(results.run, git="0123456789ab"), kept, torn=False)


def write_report(folder: Path, results: Results) -> Path:
    folder.mkdir()
    writer = ResultsWriter(folder / "results.jsonl", results.run)
    for test in results.tests:
        writer.write(test)
    writer.close()
    write_junit(folder / "junit", results.run, results.tests)
    (folder / "boards.json").write_text("[]\n", encoding="utf-8")
    return folder


@pytest.fixture
def archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A good one."""
    folder = write_report(tmp_path / "run", green())
    assert run(["bundle", str(folder)]) == 0
    capsys.readouterr()
    return tmp_path / "run.zip"


def repacked(archive: Path, change: Callable[[dict[str, bytes]], None], *, sign: bool = False) -> Path:
    """The archive with other contents; ``sign`` makes its manifest agree with them."""
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist()}
    change(files)
    if sign:
        manifest = json.loads(files["manifest.json"])
        manifest["files"] = {
            name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "manifest.json"
        }
        files["manifest.json"] = json.dumps(manifest).encode()
    other = archive.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as new:
        for name, data in files.items():
            new.writestr(name, data)
    return other


def test_a_good_archive_is_good(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(archive)]) == 0
    shown = capsys.readouterr().out
    assert "whole and consistent" in shown
    assert "says nothing about silicon: beta" in shown
    manifest = read_bundle(archive).manifest
    assert manifest["plugin"]["git"] == "0123456789ab"
    assert len(manifest["plugin"]["sha256"]) == 64
    assert set(manifest["files"]) == {"results.jsonl", "boards.json", "junit/alpha.xml"}


def test_the_same_run_gives_the_same_archive(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    assert run(["bundle", str(tmp_path / "run"), "--output", str(again)]) == 0
    assert again.read_bytes() == archive.read_bytes()


def test_a_changed_byte_is_named(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["results.jsonl"] = files["results.jsonl"].replace(b"skip it is", b"skip it was")

    assert run(["verify", str(repacked(archive, change))]) == 1
    assert "results.jsonl: was changed after it was packed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda files: files.pop("junit/alpha.xml"), "junit/alpha.xml: missing, although"),
        (
            lambda files: files.update(
                {"junit/alpha.xml": files["junit/alpha.xml"].replace(b'"skip"', b'"pass"')}
            ),
            "its outcomes are not those of results.jsonl",
        ),
        (lambda files: files.update({"junit/alpha.xml": b"<a"}), "no XML"),
        (lambda files: files.update({"../out": b""}), "leads out of the archive"),
        (
            lambda files: files.update({"results.jsonl": files["results.jsonl"].rstrip(b"\n")[:-9]}),
            "was cut off",
        ),
        (
            lambda files: files.update(
                {"results.jsonl": files["results.jsonl"].replace(b'"0123456789ab"', b'"0123456789ab-dirty"')}
            ),
            None,
        ),
        (
            lambda files: files.update(
                {"results.jsonl": files["results.jsonl"].replace(b"T000000Z", b"T000001Z")}
            ),
            "manifest: run_id is",
        ),
        (lambda files: files.pop("results.jsonl"), "has no results.jsonl"),
    ],
)
def test_what_does_not_fit_together_is_named(
    archive: Path, change: Callable[[dict[str, bytes]], None], words: str | None
) -> None:
    """Also where the manifest was made to agree."""
    found = problems_of(read_bundle(repacked(archive, change, sign=True)))
    assert any(words in problem for problem in found) if words else found == []


def test_a_red_or_dirty_run_is_not_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = small()
    dirty = Results(replace(results.run, git="0123-dirty"), results.tests, torn=False)
    assert run(["bundle", str(write_report(tmp_path / "run", dirty))]) == 0
    assert run(["verify", str(tmp_path / "run.zip"), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))["problems"]
    assert any("did not pass" in problem for problem in problems)
    assert any("nobody knows what ran" in problem for problem in problems)


def test_what_must_pass_and_did_not_run_is_no_pass(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    must = tmp_path / "mustpass.txt"
    must.write_text("# ours\nSYNC-01  # cache\nSYNC-16\n\n", encoding="utf-8")
    assert run(["verify", str(archive), "--must-pass", str(must)]) == 1
    shown = capsys.readouterr().out
    assert "SYNC-16 on alpha: no test ran" in shown
    assert "SYNC-01 on beta: no test ran" in shown
    assert "SYNC-01 on alpha" not in shown
    assert run(["bundle", str(tmp_path / "run"), "--must-pass", str(must)]) == 0
    assert run(["verify", str(archive)]) == 1


@pytest.mark.parametrize(("text", "words"), [("SYNC-99\n", "SYNC-99"), ("# none\n", "names no requirement")])
def test_a_wrong_list_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "must.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=words):
        read_must_pass(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    assert run(["verify", str(path)]) == 2
    assert "x.zip: no bundle" in capsys.readouterr().err
    assert run(["verify", str(tmp_path / "gone.zip")]) == 2


def test_two_archives_can_be_compared(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(archive), str(archive)]) == 0
    assert capsys.readouterr().out


def test_nothing_by_which_a_board_can_be_reached_leaves(tmp_path: Path) -> None:
    path = tmp_path / "boards.toml"
    path.write_text(
        '[[board]]\nname = "a"\nsoc = "rk3588"\nhost = "secret.example"\nuser = "root"\nkey = "my-key"\n'
        'power = { cycle = ["power", "--password", "hunter2"] }\nnote = "behind the door"\npin = true\n',
        encoding="utf-8",
    )
    (board,) = load_boards(path).boards
    table = public_table(board)
    assert table["name"] == "a"
    assert table["pin"] is True
    assert {"host", "user", "key", "power", "note"} <= set(table["removed"])
    for secret in ("secret.example", "root", "my-key", "hunter2", "door"):
        assert secret not in json.dumps({key: value for key, value in table.items() if key != "removed"})

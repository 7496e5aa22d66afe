"""The snippets of the documentation that are no commands: tables, Python, YAML, messages."""

from __future__ import annotations

import ast
import datetime
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from compare.make import run_of, write
from docs.prepared import call
from markdown_blocks import CLONE, PAGES, Block, blocks, commands
from report.samples import result

from pytest_rknpu import models
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.verdict import Outcome
from pytest_rknpu.waivers import load_waivers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ALL = [block for page in PAGES for block in blocks(page)]
EMULATOR = '[[board]]\nname = "{name}"\nsoc = "{soc}"\nruntime = "emulator"\n'


def of(*languages: str) -> list[Block]:
    return [block for block in ALL if block.language in languages]


def message(page: str, words: str) -> str:
    """The one error message that a page shows and that these words are in."""
    (found,) = (block.text for block in of("text") if block.page == page and words in block.text)
    return found


@pytest.mark.parametrize("block", of("toml"), ids=lambda block: block.place)
def test_tables_are_taken_by_the_real_loader(block: Block, tmp_path: Path) -> None:
    document = tomllib.loads(block.text)
    if "waiver" in document:
        expires = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=30)
        text = re.sub(r"(?m)^expires = \S+", f"expires = {expires}", block.text)
        (tmp_path / "waivers.toml").write_text(text, encoding="utf-8")
        assert len(load_waivers(tmp_path / "waivers.toml").waivers) == len(document["waiver"])
        return
    assert set(document) <= {"board", "model", "budget"}, "a table that no file of this package has"
    if block.page == "adding.md":  # a SoC that only test_adding.py knows
        return
    (tmp_path / "boards.toml").write_text(completed(block.text, tmp_path), encoding="utf-8")
    file = load_boards(tmp_path / "boards.toml")
    assert file.warnings == ()
    assert {board["name"] for board in document.get("board", ())} <= {board.name for board in file.boards}
    assert len(file.models) >= len(document.get("model", ()))
    assert len(file.budgets) == len(document.get("budget", ()))


def completed(text: str, folder: Path) -> str:
    """The text with what it refers to: boards and models of budgets, files of models."""
    document = tomllib.loads(text)
    for model in document.get("model", ()):
        for key in ("path", "weights", "calibration", "labelled"):
            if key in model:
                (folder / model[key]).write_bytes(b"")
    if "board" not in document:
        socs = {table["soc"] for table in document.get("budget", ()) if "soc" in table} or set(SOCS)
        text += "\n" + "\n".join(EMULATOR.format(name=f"emu-{soc}", soc=soc) for soc in sorted(socs))
    shipped = set(models.names())
    for name in {table["model"] for table in document.get("budget", ())} - shipped:
        (folder / "own.onnx").write_bytes(b"")
        text += f'\n[[model]]\nname = "{name}"\npath = "own.onnx"\n'
    return text


@pytest.mark.parametrize("block", of("python"), ids=lambda block: block.place)
def test_python_is_python(block: Block) -> None:
    text = block.text
    if block.title is not None and ":" in block.title:
        text = "def function(self):\n" + "".join(f"    {line}\n" for line in text.splitlines())
    elif block.title is not None and not text.startswith('"""'):  # rows of a table
        text = f"{{{text}}}" if text.startswith('"') else f"({text})"
    ast.parse(text)


@pytest.mark.parametrize("block", of("yaml"), ids=lambda block: block.place)
def test_yaml_is_yaml(block: Block) -> None:
    assert isinstance(yaml.safe_load(block.text), dict)


def test_the_example_of_pruning_prunes(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (block for block in of("python") if block.page == "sparse.md")
    names: dict[str, object] = {"onnx_bytes": models.load("digits_aligned").float_onnx}
    exec(compile(block.text, block.place, "exec"), names)
    told = capsys.readouterr().out.splitlines()
    applied = {line.split()[0]: line.split()[1] for line in told}
    assert applied == {"stem": "none", "tall": "4:2", "pointwise": "4:2", "logits": "none"}
    assert names["pruned"] != names["onnx_bytes"]


def test_the_example_of_a_test_on_models_runs(tmp_path: Path) -> None:
    (block,) = (block for block in of("python") if block.page == "user-models.md")
    (tmp_path / "home").mkdir()
    (tmp_path / "test_own.py").write_text(f"import pytest\n\n\n{block.text}", encoding="utf-8")
    boards = CLONE / "boards.toml"
    ended = call(f"pytest test_own.py --boards {boards} --board emu-rk3588 --rknpu-report report", tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert "mean of the best score" in (tmp_path / "report" / "results.jsonl").read_text(encoding="utf-8")


def test_the_query_of_the_history_is_answered(tmp_path: Path) -> None:
    page = CLONE / "docs" / "history.md"
    (query,) = (c.text for block in blocks(page) for c in commands(block) if c.text.startswith("sqlite3 "))
    (tmp_path / "home").mkdir()
    write(tmp_path / "run", run_of(result(), result(nodeid="b", outcome=Outcome.FAIL)))
    made = call("rknpu history run --database history.sqlite", tmp_path)
    assert made.returncode == 0, made.stdout
    _, file, asked = shlex.split(query)
    with closing(sqlite3.connect(tmp_path / file)) as database:
        assert [count for _, count in database.execute(asked)] == [1]


def test_the_message_about_an_unknown_soc_is_what_a_page_shows(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    wrong = EMULATOR.format(name="lab", soc="rk3589")
    (tmp_path / "boards.toml").write_text(EMULATOR.format(name="a", soc="rk3588") + wrong, encoding="utf-8")
    assert call("rknpu boards --boards boards.toml", tmp_path).stdout == message("boards.md", '"rk3589"')


def test_the_message_about_a_missing_key_is_what_a_page_shows(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "net.onnx").write_bytes(b"")
    model = '[[model]]\nname = "mobilenet-v2"\npath = "net.onnx"\ndtype = "w8a8"\n'
    (tmp_path / "boards.toml").write_text(EMULATOR.format(name="a", soc="rk3588") + model, encoding="utf-8")
    shown = message("user-models.md", "quantised on it")
    assert call("rknpu boards --boards boards.toml", tmp_path).stdout == shown

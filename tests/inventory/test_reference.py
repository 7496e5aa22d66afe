"""docs/boards.md says what the schema says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_rknpu.inventory.reference import keys_table, main, socs_table, updated
from pytest_rknpu.inventory.schema import Board, only_with
from pytest_rknpu.inventory.socs import SOCS

CLONE = Path(__file__).parents[2]


def test_docs_are_current() -> None:
    text = (CLONE / "docs" / "boards.md").read_text(encoding="utf-8")
    assert len(re.findall("<!-- generated: ", text)) == 2
    assert updated(text) == text, "run: python -m pytest_rknpu.inventory.reference docs/boards.md"


def test_tables_name_every_key_and_soc() -> None:
    assert re.findall(r"^\| `(\w+)` ", keys_table(), re.MULTILINE) == list(Board.model_fields)
    assert re.findall(r"^\| (r\w+)", socs_table(), re.MULTILINE) == list(SOCS)


def test_marked_parts_are_replaced_and_nothing_else(tmp_path) -> None:
    text = "before\n<!-- generated: socs -->\nold\n<!-- end -->\nafter\n"
    file = tmp_path / "page.md"
    file.write_text(text)
    main([str(file)])
    assert file.read_text() == text.replace("old\n", socs_table())
    main([str(file)])
    assert file.read_text() == text.replace("old\n", socs_table())


def test_unknown_marker() -> None:
    with pytest.raises(KeyError):
        updated("<!-- generated: nothing -->\n<!-- end -->")


@pytest.mark.parametrize("key", Board.model_fields)
def test_examples_are_taken(key: str) -> None:
    (example,) = Board.model_fields[key].examples or []
    table: dict[str, object] = {"name": "one", "soc": "rk3588", "runtime": "emulator", key: example}
    need = only_with(key)
    if need == ("runtime", "connected"):
        table["runtime"] = "connected"
    elif need is not None and need != ("runtime", "emulator"):
        table |= {"runtime": "librknnrt", "transport": "ssh", "host": "192.0.2.7", key: example}
    if (key, example) == ("runtime", "librknnrt"):
        table["transport"] = "local"
    expected = tuple(example) if isinstance(example, list) else example
    assert getattr(Board.model_validate(table), key) == expected

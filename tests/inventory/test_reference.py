"""The tables of the documentation say what the schema says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from pytest_rknpu.inventory.budget_table import Budget
from pytest_rknpu.inventory.key_rules import goes_with
from pytest_rknpu.inventory.model_table import InputTable, LimitsTable, ModelTable, ToleranceTable
from pytest_rknpu.inventory.power_table import PowerTable, power_from
from pytest_rknpu.inventory.published import PUBLISHED_FPS, suggested_ms
from pytest_rknpu.inventory.reference import (
    clocks_table,
    keys_table,
    main,
    plain_keys_table,
    published_table,
    socs_table,
    updated,
)
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.socs import SOCS

CLONE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "tables"), [("boards-reference", 7), ("boards", 1), ("latency", 2), ("budgets", 1)]
)
def test_docs_are_current(page: str, tables: int) -> None:
    text = (CLONE / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert len(re.findall("<!-- generated: ", text)) == tables
    assert updated(text) == text, f"run: python -m pytest_rknpu.inventory.reference docs/{page}.md"


def test_tables_name_every_key_and_soc() -> None:
    assert re.findall(r"^\| `(\w+)` ", keys_table(), re.MULTILINE) == list(Board.model_fields)
    assert re.findall(r"^\| (r\w+)", socs_table(), re.MULTILINE) == list(SOCS)
    assert re.findall(r"^\| (r\w+)", clocks_table(), re.MULTILINE) == list(SOCS)
    assert re.findall(r"^\| `(\w+)` ", plain_keys_table(Budget), re.MULTILINE) == list(Budget.model_fields)
    assert re.findall(r"^\| (\w+) \| [\d.]+:", published_table(), re.MULTILINE) == list(PUBLISHED_FPS)


@pytest.mark.parametrize("table", [InputTable, LimitsTable, ModelTable, PowerTable, ToleranceTable])
def test_every_key_of_a_table_is_described(table: type[BaseModel]) -> None:
    rows = plain_keys_table(table).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(table.model_fields)
    assert not [row for row in rows if "| None |" in row or "= null`" in row]


def test_types_defaults_and_units_are_told() -> None:
    rows = {row.split("`")[1]: row for row in plain_keys_table(PowerTable).splitlines()[2:]}
    assert "| number above 0 to 3600, in seconds | `120.0` |" in rows["wait_s"]
    assert "| list of texts | needed |" in rows["cycle"]
    (host_key,) = (row for row in keys_table().splitlines() if row.startswith("| `host_key` |"))
    assert '| `"check"` | `transport = "ssh"` or `transport = "labgrid"` |' in host_key


@pytest.mark.parametrize("table", [InputTable, LimitsTable, PowerTable, ToleranceTable])
def test_examples_of_inner_tables_are_taken(table: type[BaseModel]) -> None:
    fields = table.model_fields.items()
    examples = {key: field.examples[0] for key, field in fields if field.examples}
    examples |= {key: tuple(value) for key, value in examples.items() if key == "cycle"}
    assert table.model_validate(examples).model_fields_set == set(table.model_fields)


def test_suggested_budgets_are_looser_than_what_is_published() -> None:
    for rates in PUBLISHED_FPS.values():
        assert set(rates) <= set(SOCS)
        for rate in rates.values():
            p50, p99 = suggested_ms(rate)
            assert 1000 / rate * 1.25 <= p50 <= 1000 / rate * 1.25 + 1
            assert p50 < p99
    assert suggested_ms(100.0) == (13.0, 15.0)
    assert suggested_ms(450.7) == (2.8, 3.4)


@pytest.mark.parametrize("key", Budget.model_fields)
def test_examples_of_budgets_are_taken(key: str) -> None:
    (example,) = Budget.model_fields[key].examples or []
    table: dict[str, object] = {"model": "digits_cnn", "p50_ms": 1.0, key: example}
    if key != "board":
        table.setdefault("soc", "rk3588")
    assert getattr(Budget.model_validate(table), key) == example


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


_REACHED: dict[str, dict[str, object]] = {
    "ssh": {"transport": "ssh", "host": "192.0.2.7"},
    "adb": {"transport": "adb"},
    "labgrid": {"transport": "labgrid", "place": "a"},
}


@pytest.mark.parametrize("key", Board.model_fields)
def test_examples_are_taken(key: str) -> None:
    (example,) = Board.model_fields[key].examples or []
    table: dict[str, object] = {"name": "one", "soc": "rk3588", "runtime": "emulator", key: example}
    needed_key, values = goes_with(key) or ("runtime", ("emulator",))
    if needed_key == "transport" or key == "transport":
        table |= _REACHED[example if key == "transport" else values[0]] | {key: example}
    elif table["runtime"] not in values:
        table |= (
            {"runtime": values[0], **_REACHED["ssh"]} if values[0] == "librknnrt" else {"runtime": values[0]}
        )
    if key in ("filter", "places"):
        table = {"filter": {"soc": "rk3588"}, **table}
        del table["place"]
    if key == "runtime":
        table = {"name": "one", "soc": "rk3588", "runtime": example, "transport": "local"}
    expected = tuple(example) if isinstance(example, list) else example
    if key == "power":
        expected = power_from(example)
    assert getattr(Board.model_validate(table), key) == expected

"""Whatever a boards.toml holds, reading it ends in boards or in a ConfigurationError of one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import Board, load_boards

NAMES = st.one_of(st.sampled_from(sorted(Board.model_fields)), st.text(max_size=8))
SCALARS = st.one_of(
    st.text(max_size=12),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(),
    st.dates(),
    st.times(),
    st.sampled_from(
        ["rk3588", "rv1106", "emulator", "simulator", "librknnrt", "ssh", "local", "a", "b", "1.2.3"]
    ),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
TABLES = st.lists(st.dictionaries(NAMES, VALUES, max_size=8), max_size=4)
DOCUMENTS = st.one_of(
    TABLES.map(lambda tables: {"board": tables}),
    st.dictionaries(st.sampled_from(["board", "x"]), VALUES, max_size=2),
)


def text(value: str) -> str:
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'


def toml(value: object) -> str:
    """Write a value as TOML."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)} = {toml(entry)}" for key, entry in value.items()) + "}"
    return str(value)


def check(file: Path) -> None:
    boards: tuple[Board, ...] = ()
    refusal = None
    try:
        boards = load_boards(file).boards
    except ConfigurationError as error:
        refusal = str(error)
    if refusal is None:
        assert boards
        assert len({board.name for board in boards}) == len(boards)
    else:
        assert "\n" not in refusal
        assert refusal.startswith(str(file))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("properties") / "boards.toml"


@settings(max_examples=examples(200), deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    check(file)


@settings(max_examples=examples(300), deadline=None)
@given(content=st.text(alphabet=st.sampled_from("[]boards=\"'\n #.{},\\u0019-:T"), max_size=80))
def test_text_that_looks_like_toml(file: Path, content: str) -> None:
    file.write_text(content)
    check(file)


@settings(max_examples=examples(400), deadline=None)
@given(document=DOCUMENTS)
def test_any_toml_document(file: Path, document: dict[str, object]) -> None:
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in document.items()))
    check(file)


@settings(max_examples=examples(200), deadline=None)
@given(changes=st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_sound_table_with_changes(file: Path, changes: dict[str, object]) -> None:
    table = {"name": "a", "soc": "rk3588", "runtime": "emulator"} | changes
    file.write_text(f"board = [{toml(table)}]\n")
    check(file)

"""`load_boards` reads a boards.toml.

A file is a list of ``[[board]]`` tables (`board_table`), of ``[[model]]`` tables (`model_table`) and of
``[[budget]]`` tables (`budget_table`). Whatever is wrong with it is a ConfigurationError that names file,
table and key, before anything is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.board_table import Board
from pytest_rknpu.inventory.document import board_tables, parse
from pytest_rknpu.inventory.explain import explain_duplicates, explain_table, listed_problems
from pytest_rknpu.inventory.key_rules import loose_host_keys

if TYPE_CHECKING:
    from pytest_rknpu.inventory.budget_table import Budget
    from pytest_rknpu.inventory.model_table import ModelTable

__all__ = ["Board", "BoardsFile", "load_boards"]


@dataclass(frozen=True)
class BoardsFile:
    """A boards.toml that was read and found right; tables in the file's order.

    ``warnings`` say what was taken although it can hardly be meant.
    """

    path: Path
    boards: tuple[Board, ...]
    models: tuple[ModelTable, ...] = ()
    budgets: tuple[Budget, ...] = ()
    warnings: tuple[str, ...] = ()


def load_boards(path: Path | str) -> BoardsFile:
    """Read a boards.toml.

    Raises ConfigurationError, and nothing else, for whatever is wrong with it: not readable, not UTF-8, not
    TOML (with the line), no board, unknown or misplaced keys, wrong types and values, two boards of one name.
    """
    path = Path(path)
    document = parse(path)
    tables = board_tables(path, document)
    boards: list[Board] = []
    problems: list[str] = []
    for number, table in enumerate(tables, start=1):
        try:
            boards.append(_absolute_paths(Board.model_validate(table), path))
        except ValidationError as error:
            problems += explain_table(number, table, error, Board.model_fields)
    problems += explain_duplicates(tables)
    models, model_problems = _models(path, document)
    budgets, warnings, budget_problems = _budgets(document, boards, models)
    problems += model_problems + budget_problems
    if problems:
        raise ConfigurationError(f"{path}: {listed_problems(problems)}")
    return BoardsFile(path, tuple(boards), models, budgets, (*warnings, *loose_host_keys(boards)))


def _budgets(
    document: dict[str, Any], boards: Sequence[Board], models: Sequence[ModelTable]
) -> tuple[tuple[Budget, ...], tuple[str, ...], list[str]]:
    """The [[budget]] tables, what is odd about them, and what is wrong with them."""
    if "budget" not in document:
        return (), (), []
    from pytest_rknpu.inventory.budgets import implausible, read_budgets

    budgets, problems = read_budgets(document["budget"], boards, [model.name for model in models])
    return budgets, tuple(implausible(budgets, boards)), problems


def _models(path: Path, document: dict[str, Any]) -> tuple[tuple[ModelTable, ...], list[str]]:
    """The [[model]] tables, and what is wrong with them."""
    if "model" not in document:
        return (), []
    from pytest_rknpu.inventory.model_files import read_models

    return read_models(path, document["model"])


def _absolute_paths(board: Board, path: Path) -> Board:
    """Let a relative ssh_config or key start at the folder of the file that names it."""
    named = {key: value for key in ("ssh_config", "key") if (value := getattr(board, key)) is not None}
    return board.model_copy(
        update={key: str(path.parent.absolute() / Path(value).expanduser()) for key, value in named.items()}
    )

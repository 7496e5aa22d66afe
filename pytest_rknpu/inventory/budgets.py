"""Reading the ``[[budget]]`` tables of a boards.toml, checking what they refer to, and finding the one that
applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.budget_table import Budget
from pytest_rknpu.inventory.explain import explain_table, heading
from pytest_rknpu.inventory.socs import SOCS, SoC
from pytest_rknpu.inventory.wording import did_you_mean, quoted

if TYPE_CHECKING:
    from pytest_rknpu.inventory.board_table import Board

KIND = "budget"
_PREFIX = "RKNN_NPU_CORE_"
_ONE_CORE = "RKNN_NPU_CORE_0"
_MEASURED = frozenset({"emulator", "librknnrt"})
_SIZES_ONLY = "connected"

# Outside these a number of milliseconds is hardly one. No RKNPU2 runs a model in less than a tenth of a
# millisecond, and published models take 2 to 60 ms (docs/budgets.md).
_LEAST_MS = 0.1
_MOST_MS: Mapping[str, float] = {"first_inference_ms": 10_000.0, "init_ms": 60_000.0}
_MOST_MS_OF_A_RUN = 1_000.0
_MOST_OF_MEDIAN = 100.0
_LEAST_BYTES = 1024


def one_core(soc: SoC) -> str | None:
    """The core mask of what is said without one: one core, or no mask where the SoC has none."""
    return _ONE_CORE if soc.core_masks else None


def core_mask_of(soc: SoC, core_mask: str | None) -> str | None:
    """The header's name of a core mask, given in full, in short (``0_1``) or not at all.

    Raises ConfigurationError for one that this SoC does not have.
    """
    if core_mask is None:
        return one_core(soc)
    if not soc.core_masks:
        raise ConfigurationError(f"{soc.name} has no core masks (C API reference, table 4-1); leave it out")
    name = core_mask.upper()
    full = name if name.startswith(_PREFIX) else _PREFIX + name
    if full not in soc.core_masks:
        raise ConfigurationError(
            f"{soc.name} has no core mask {quoted(core_mask)}; it has {', '.join(soc.core_masks)}"
        )
    return full


def read_budgets(
    tables: object, boards: Sequence[Board], models: Iterable[str]
) -> tuple[tuple[Budget, ...], list[str]]:
    """The budgets that ``tables`` (what TOML has under ``budget``) describe, and all that is wrong with them.

    ``models`` are the names of the file's own models; those that are shipped are known.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return (), ["each budget is a table that starts with [[budget]], in two brackets"]
    from pytest_rknpu.models import names

    known = sorted({*names(), *models})
    budgets: dict[tuple[str, str, str | None], tuple[int, Budget]] = {}
    problems: list[str] = []
    for number, table in enumerate(tables, start=1):
        where = heading(number, table.get("model"), KIND)
        try:
            budget, wrong = _settled(Budget.model_validate(table), boards, known)
        except ValidationError as error:
            problems += explain_table(number, {"name": table.get("model")}, error, Budget.model_fields, KIND)
            continue
        problems += [f'{where}, key "{key}": {sentence}' for key, sentence in wrong]
        place = (
            budget.model,
            f"board {budget.board}" if budget.board else f"SoC {budget.soc}",
            budget.core_mask,
        )
        if place in budgets:
            problems.append(
                f"{where}: [[{KIND}]] {budgets[place][0]} is for the same model, board and core mask"
            )
        budgets.setdefault(place, (number, budget))
    if not problems:
        problems += _clashes(list(budgets.values()), boards)
    return tuple(budget for _, budget in budgets.values()), problems


def _clashes(budgets: Sequence[tuple[int, Budget]], boards: Sequence[Board]) -> Iterator[str]:
    """Budgets for a board that make no sense together with what its SoC's says of the other keys."""
    socs = {board.name: board.soc for board in boards}
    everywhere = {(budget.soc, _subject(budget)): (number, budget) for number, budget in budgets}
    for number, own in budgets:
        place = (socs.get(own.board or ""), _subject(own))
        if own.board is None or place not in everywhere:
            continue
        general, other = everywhere[place]
        try:
            why = [sentence for _, sentence in _too_few(_over(other, own))]
        except ValidationError as error:
            why = [error.errors()[0]["msg"].removeprefix("Value error, ")]
        where = heading(number, own.model, KIND)
        yield from (f"{where}, with what [[{KIND}]] {general} says of its SoC: {one}" for one in why)


def _settled(
    budget: Budget, boards: Sequence[Board], models: Sequence[str]
) -> tuple[Budget, list[tuple[str, str]]]:
    """The budget with its core mask in full, and (key, what is wrong)."""
    wrong: list[tuple[str, str]] = []
    if budget.model not in models:
        hint = did_you_mean(budget.model, models) or f"; there are {', '.join(models)}"
        wrong.append(("model", f"unknown model {quoted(budget.model)}{hint}"))
    soc = SOCS[budget.soc] if budget.soc else None
    if budget.board is not None:
        board = next((board for board in boards if board.name == budget.board), None)
        if board is None:
            listed = [board.name for board in boards]
            hint = did_you_mean(budget.board, listed) or f"; there are {', '.join(listed)}"
            wrong.append(("board", f"no board is called {quoted(budget.board)}{hint}"))
        elif board.runtime == _SIZES_ONLY and budget.milliseconds:
            why = f'runtime = "{_SIZES_ONLY}": eval_perf gives means; budget sizes only'
            wrong.append(("board", f"time is not judged on {why}"))
        elif not _holds_on(budget, board):
            wrong.append(("board", f'neither time nor memory is measured on runtime = "{board.runtime}"'))
        else:
            soc = board.chip
    if soc is not None:
        try:
            budget = budget.model_copy(update={"core_mask": core_mask_of(soc, budget.core_mask)})
        except ConfigurationError as error:
            wrong.append(("core_mask", str(error)))
    return budget, [*wrong, *_too_few(budget)]


def _holds_on(budget: Budget, board: Board) -> bool:
    """Whether anything of it is measured there."""
    return board.runtime in _MEASURED or (board.runtime == _SIZES_ONLY and bool(budget.sizes))


def _too_few(budget: Budget) -> Iterator[tuple[str, str]]:
    """Samples with which no verdict is possible, whatever they show."""
    from pytest_rknpu.measure import Rule, require_enough_for

    try:
        require_enough_for(budget.samples, list(budget.quantiles), Rule(budget.alpha))
    except ConfigurationError as error:
        yield "samples", str(error)


def implausible(budgets: Iterable[Budget], boards: Sequence[Board] = ()) -> Iterator[str]:
    """Values that look like another unit than the key's, and budgets that hold for no board, in words.

    Worth a warning, not a refusal.
    """
    for budget in budgets:
        where = f"[[budget]] for {budget.model} on {budget.board or budget.soc}"
        own = [board for board in boards if board.soc == budget.soc and _holds_on(budget, board)]
        if boards and budget.soc is not None and not own:
            yield f"{where}: no board of this file with that SoC is measured, so that it holds for none"
        for key, size in budget.sizes.items():
            if size < _LEAST_BYTES:
                yield f"{where}: {key} = {size} looks like KiB or MiB; the unit is bytes"
        for key, value in budget.milliseconds.items():
            if value < _LEAST_MS:
                yield f"{where}: {key} = {value:g} looks like seconds; the unit is milliseconds"
            elif value > _MOST_MS.get(key, _MOST_MS_OF_A_RUN):
                yield f"{where}: {key} = {value:g} looks like microseconds; the unit is milliseconds"
        given = list(budget.quantiles.values())
        if given and given[-1] > _MOST_OF_MEDIAN * given[0]:
            yield f"{where}: quantiles from {given[0]:g} to {given[-1]:g} ms look like two units"


def budgets_for(budgets: Iterable[Budget], board: Board) -> tuple[Budget, ...]:
    """What holds for a board, one for each model and core mask.

    The keys of a budget for the board go before those of one for its SoC, and those that it does not have are
    the SoC's.
    """
    found = {_subject(budget): budget for budget in budgets if budget.soc == board.soc}
    own = [budget for budget in budgets if budget.board == board.name]
    found.update({_subject(budget): _over(found.get(_subject(budget)), budget) for budget in own})
    return tuple(found.values())


def _subject(budget: Budget) -> tuple[str, str | None]:
    return budget.model, budget.core_mask


def _over(everywhere: Budget | None, own: Budget) -> Budget:
    """Raises ValidationError where both together make no sense."""
    if everywhere is None:
        return own
    keys = {**everywhere.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    return Budget.model_validate({**keys, "soc": None})


def find_budget(budgets: Iterable[Budget], model: str, core_mask: str | None) -> Budget | None:
    """Of those that hold for a board, the one for a model and core mask: the header's name, None without."""
    return next((budget for budget in budgets if _subject(budget) == (model, core_mask)), None)

"""Collection: tests marked ``models`` become one item per model, those of boards.toml among them.

``@pytest.mark.models("digits_cnn", "probe_chain")`` on a test that uses the fixture `model_name` (as
`subject` does) names the shipped models; each ``[[model]]`` of boards.toml joins them. So does, where it uses
`budgets`, each model of a ``[[budget]]``. Without arguments the test is for the user's models alone. Nothing
here opens a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_rknpu.farm.own_fixtures import is_ours

if TYPE_CHECKING:
    from pytest_rknpu.farm.collecting import Problems
    from pytest_rknpu.farm.run import Run

_NO_MODEL = "no-model"
_NONE_THERE = "boards.toml has no [[model]] table, and this test is for such models (docs/user-models.md)"


def parametrise_models(metafunc: pytest.Metafunc, run: Run, problems: Problems) -> None:
    """One item per model, in the marker's order and then that of boards.toml; ids are the models' names."""
    shipped = _marked(metafunc)
    if shipped is None:
        return
    if "model_name" not in metafunc.fixturenames:
        if is_ours(metafunc, "board"):  # else it is another project's marker of that name
            problems.first = problems.first or (
                f"{metafunc.definition.nodeid}: is marked models, but uses neither `model_name` nor `subject`"
            )
        return
    own = _user_names(run, problems)
    budgeted = _budgeted_names(run, problems) if is_ours(metafunc, "budgets") else ()
    names: list[Any] = list(dict.fromkeys([*shipped, *own, *budgeted])) or [nothing_to_run()]
    metafunc.parametrize("model_name", names, indirect=True)


def lacks_models(metafunc: pytest.Metafunc, run: Run, problems: Problems) -> bool:
    """Whether the test is for the user's models alone and there are none: one item then says so."""
    return _marked(metafunc) == () and not _user_names(run, problems)


def nothing_to_run() -> Any:
    """The parameter of a test for which there is no model."""
    return pytest.param(None, id=_NO_MODEL, marks=pytest.mark.skip(reason=_NONE_THERE))


def _marked(metafunc: pytest.Metafunc) -> tuple[str, ...] | None:
    """The shipped models that the test names; None where it is not marked so, or has its own `model_name`."""
    if "model_name" in metafunc.fixturenames and not is_ours(metafunc, "model_name"):
        return None
    marker = metafunc.definition.get_closest_marker("models")
    return None if marker is None else tuple(str(name) for name in marker.args)


def _user_names(run: Run, problems: Problems) -> tuple[str, ...]:
    """The names in boards.toml; none where the file cannot be used, which `problems` then tells."""
    if problems.boards(run) is None or not run.models:
        return ()
    from pytest_rknpu import models  # not before: it takes numpy

    names = tuple(model.name for model in run.models)
    taken = sorted(set(names) & set(models.names()))
    if taken:
        problems.first = (
            f'{run.file.path}: [[model]] "{taken[0]}", key "name": pytest-rknpu ships a model of that name'
        )
        return ()
    return names


def _budgeted_names(run: Run, problems: Problems) -> tuple[str, ...]:
    """The models that have a budget, whatever for; none where the file cannot be used."""
    if problems.boards(run) is None:
        return ()
    return tuple(budget.model for budget in run.file.budgets)

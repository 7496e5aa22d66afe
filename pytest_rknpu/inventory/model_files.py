"""Reading the ``[[model]]`` tables of a boards.toml, and finding the files that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from pytest_rknpu.inventory.explain import explain_duplicates, explain_table, heading
from pytest_rknpu.inventory.model_table import ModelTable
from pytest_rknpu.inventory.wording import did_you_mean, quoted

KIND = "model"
PICTURES = (".jpg", ".jpeg", ".png", ".bmp")
_FILE_KEYS = ("path", "weights", "calibration", "labelled")


def read_models(file: Path, tables: object) -> tuple[tuple[ModelTable, ...], list[str]]:
    """The models that ``tables`` (what TOML has under ``model``) describe, and all that is wrong with them.

    Paths of the models returned are absolute; relative ones start at the folder of ``file``.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return (), ["each model is a table that starts with [[model]], in two brackets"]
    models: list[ModelTable] = []
    problems: list[str] = []
    for number, table in enumerate(tables, start=1):
        try:
            model = _with_absolute_paths(ModelTable.model_validate(table), file.parent.absolute())
        except ValidationError as error:
            problems += explain_table(number, table, error, ModelTable.model_fields, KIND)
            continue
        where = heading(number, model.name, KIND)
        problems += [f'{where}, key "{key}": {sentence}' for key, sentence in missing_files(model)]
        models.append(model)
    problems += _missing_twins(tables, models)
    return tuple(models), problems + explain_duplicates(tables, KIND)


def _missing_twins(tables: Sequence[Mapping[str, object]], models: Sequence[ModelTable]) -> list[str]:
    """``dense`` names another table of the file, which has to be one that nobody pruned."""
    named = {str(table.get("name")): number for number, table in enumerate(tables, start=1)}
    by_name = {model.name: model for model in models}
    problems = []
    for model in models:
        where = f'{heading(named[model.name], model.name, KIND)}, key "dense"'
        if model.dense is not None and model.dense not in named:
            hint = did_you_mean(model.dense, by_name)
            problems.append(f"{where}: there is no [[model]] {quoted(model.dense)}{hint}")
        elif model.dense is not None and (dense := by_name.get(model.dense)) and dense.sparse is not None:
            problems.append(f"{where}: {quoted(model.dense)} declares a sparse mode itself")
    return problems


def listed_samples(calibration: Path) -> list[list[Path]]:
    """The samples of a calibration list: for each line its files, one per input.

    Paths start at the list's folder. Empty lines are left out. Raises OSError and UnicodeDecodeError.
    """
    lines = calibration.read_text(encoding="utf-8").splitlines()
    return [[calibration.parent / word for word in line.split()] for line in lines if line.strip()]


def _with_absolute_paths(model: ModelTable, folder: Path) -> ModelTable:
    def absolute(file: str) -> str:
        try:
            return str(folder / Path(file).expanduser())
        except RuntimeError:  # "~name" of nobody: then it is a file of that name
            return str(folder / file)

    files = {key: absolute(value) for key in _FILE_KEYS if (value := getattr(model, key)) is not None}
    ready = MappingProxyType({soc: absolute(file) for soc, file in model.rknn.items()})
    return model.model_copy(update={**files, "rknn": ready})


def missing_files(model: ModelTable) -> Iterator[tuple[str, str]]:
    """(key, what is wrong) for each file that is not there."""
    named = [(key, getattr(model, key)) for key in _FILE_KEYS]
    named += [("rknn", file) for file in model.rknn.values()]
    for key, file in named:
        if file is not None and not _is_file(Path(file)):
            yield key, f"there is no file {file}"
    calibration = Path(model.calibration or "")
    if calibration.suffix.lower() == ".txt" and _is_file(calibration):
        yield from (("calibration", sentence) for sentence in _list_problems(model, calibration))


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a name longer than file systems take
        return False


def _list_problems(model: ModelTable, calibration: Path) -> Iterator[str]:
    """What is wrong with a calibration list."""
    try:
        samples = listed_samples(calibration)
    except (OSError, UnicodeDecodeError) as error:
        yield f"{calibration} cannot be read as a list of files: {error}"
        return
    if not samples:
        yield f"{calibration} names no file"
    for number, files in enumerate(samples, start=1):
        wrong = _line_problem(files, len(model.inputs))
        if wrong is not None:
            yield f"{calibration}, sample {number}: {wrong}"
            return  # one is enough: a list made for another folder misses all of its files


def _line_problem(files: Sequence[Path], inputs: int) -> str | None:
    if inputs and len(files) != inputs:
        return f"names {len(files)} files, the model has {inputs} inputs"
    for file in files:
        if file.suffix.lower() not in (".npy", *PICTURES):
            return (
                f"{file.name} is neither .npy nor a picture ({', '.join(PICTURES)}); lines are split at "
                "blanks, so that no name in a list can hold one"
            )
        if not _is_file(file):
            return f"there is no file {file}"
    return None

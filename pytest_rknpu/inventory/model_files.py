"""Reading the ``[[model]]`` tables of a boards.toml, and finding the files that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from pytest_rknpu.inventory.explain import explain_duplicates, explain_table, heading
from pytest_rknpu.inventory.model_table import ModelTable

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
        problems += [f'{where}, key "{key}": {sentence}' for key, sentence in _missing_files(model)]
        models.append(model)
    return tuple(models), problems + explain_duplicates(tables, KIND)


def listed_samples(calibration: Path) -> list[list[Path]]:
    """The samples of a calibration list: for each line its files, one per input.

    Paths start at the list's folder. Empty lines are left out. Raises OSError and UnicodeDecodeError.
    """
    lines = calibration.read_text(encoding="utf-8").splitlines()
    return [[calibration.parent / word for word in line.split()] for line in lines if line.strip()]


def _with_absolute_paths(model: ModelTable, folder: Path) -> ModelTable:
    def absolute(file: str) -> str:
        return str(folder / Path(file).expanduser())

    files = {key: absolute(value) for key in _FILE_KEYS if (value := getattr(model, key)) is not None}
    ready = MappingProxyType({soc: absolute(file) for soc, file in model.rknn.items()})
    return model.model_copy(update={**files, "rknn": ready})


def _missing_files(model: ModelTable) -> Iterator[tuple[str, str]]:
    """(key, what is wrong) for each file that is not there."""
    named = [(key, getattr(model, key)) for key in _FILE_KEYS]
    named += [("rknn", file) for file in model.rknn.values()]
    for key, file in named:
        if file is not None and not Path(file).is_file():
            yield key, f"there is no file {file}"
    calibration = Path(model.calibration or "")
    if calibration.suffix.lower() == ".txt" and calibration.is_file():
        yield from (("calibration", sentence) for sentence in _list_problems(model, calibration))


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
            return f"{file.name} is neither .npy nor a picture ({', '.join(PICTURES)})"
        if not file.is_file():
            return f"there is no file {file}"
    return None

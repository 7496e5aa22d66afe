"""`rknpu compile`: an .rknn file for each SoC, and what the compiler says of it.

A file on the command line becomes the ``[[model]]`` table that boards.toml would have for it: it is checked,
loaded and built the same way, and comes from the same cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from pytest_rknpu.errors import ConfigurationError, RknpuError
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.inventory.wording import did_you_mean, quoted
from pytest_rknpu.report.whole_file import write_whole

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import BoardsFile
    from pytest_rknpu.session.builds import Build
    from pytest_rknpu.session.user_models import UserModel

SUFFIX = ".rknn"
#: What the toolkit calls the type that everybody calls int8.
_DTYPES: Mapping[str, str] = MappingProxyType({"int8": "w8a8"})
#: Key of a ``[[model]]`` table -> what sets it on the command line.
_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "path": "MODEL",
        "calibration": "--calibration",
        "dtype": "--dtype",
        "mean": "--mean",
        "std": "--std",
        "sparse": "--sparse",
        "inputs": "--input",
        "weights": "--weights",
    }
)


@dataclass(frozen=True)
class Wish:
    """What a command line says of a model file; None where it says nothing. ``inputs`` are ``NAME=SHAPE``."""

    path: Path
    calibration: Path | None = None
    dtype: str | None = None
    mean: str | None = None
    std: str | None = None
    sparse: int | None = None
    inputs: Sequence[str] = ()
    weights: Path | None = None


@dataclass(frozen=True)
class Made:
    """A build and where its file was put."""

    soc: str
    file: Path
    build: Build


@dataclass(frozen=True)
class Failed:
    """A SoC that the model was not built for, and why."""

    soc: str
    message: str


def model_of_file(wish: Wish) -> UserModel:
    """The model that the options describe. Raises ConfigurationError that names the options."""
    from pydantic import ValidationError

    from pytest_rknpu.inventory.model_files import missing_files
    from pytest_rknpu.inventory.model_table import ModelTable
    from pytest_rknpu.session.user_models import UserModel

    table: dict[str, Any] = {
        "name": _name_of(wish.path),
        "path": str(wish.path.absolute()),
        "calibration": None if wish.calibration is None else str(wish.calibration.absolute()),
        "weights": None if wish.weights is None else str(wish.weights.absolute()),
        "dtype": _dtype(wish.dtype),
        "mean": _numbers("--mean", wish.mean),
        "std": _numbers("--std", wish.std),
        "sparse": wish.sparse,
        "inputs": [_input(text) for text in wish.inputs] or None,
    }
    try:
        given = {key: value for key, value in table.items() if value is not None}
        model = ModelTable.model_validate(given)
    except ValidationError as error:
        from pytest_rknpu.inventory.explain import explain_options

        raise ConfigurationError(in_options(explain_options(error, _OPTIONS))) from None
    for key, sentence in missing_files(model):
        if key == "calibration":  # what a list names; the files of the options themselves are there
            raise ConfigurationError(f"{_OPTIONS[key]}: {sentence}")
    return UserModel(model)


def _name_of(path: Path) -> str:
    """A name such as tables have, for messages and for the files that come out."""
    return re.sub(r"[^a-z0-9_.-]+", "-", path.stem.lower())[:64].strip("-_.") or "model"


def _dtype(word: str | None) -> str | None:
    from pytest_rknpu.inventory.model_formats import Dtype

    known = [*_DTYPES, *get_args(Dtype)]
    if word is not None and word not in known:
        hint = did_you_mean(word, known) or f"; known: {', '.join(known)}"
        raise ConfigurationError(f"--dtype {quoted(word)}: there is no such type{hint}")
    return None if word is None else _DTYPES.get(word, word)


def _numbers(option: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ConfigurationError(
            f"{option} {quoted(text)}: give a number per channel, as in 0.5,0.5"
        ) from None


def _input(text: str) -> dict[str, Any]:
    """``NAME=1,3,224,224`` as an entry of ``inputs``; the layout of the data may stand behind it."""
    name, _, shape = text.rpartition("=")
    *words, last = shape.split(",")
    layout = {"layout": last} if last in ("nchw", "nhwc") else {}
    try:
        sizes = [int(word) for word in (words if layout else [*words, last])]
    except ValueError:
        raise ConfigurationError(
            f"--input {quoted(text)}: give NAME=SHAPE, as in input=1,3,224,224 or input=1,3,224,224,nhwc"
        ) from None
    return {"shape": sizes, **layout, **({"name": name} if name else {})}


def in_options(message: str) -> str:
    """A sentence about the keys of a table as one about the options that set them."""
    message = re.sub(r'\[\[model\]\] "[^"]*"(, )?(?=key|:)', "", message)
    return re.sub(
        r'(?:the )?key "(\w+)"', lambda found: _OPTIONS.get(found[1], found[0]), message.removeprefix(": ")
    )


def model_of_boards(file: BoardsFile, name: str) -> UserModel:
    """A ``[[model]]`` of boards.toml. Raises ConfigurationError with the nearest name."""
    from pytest_rknpu.session.user_models import UserModel

    tables = {table.name: table for table in file.models}
    if name not in tables:
        there = did_you_mean(name, tables) or f"; there {_listed(list(tables))}"
        raise ConfigurationError(f"{file.path} has no [[model]] {quoted(name)}{there}")
    return UserModel(tables[name])


def _listed(names: Sequence[str]) -> str:
    return f"are {', '.join(names)}" if names else "is none (give a file: rknpu compile MODEL)"


def platforms(socs: Sequence[str], file: BoardsFile | None) -> list[str]:
    """The toolkit's names of the SoCs that were asked for, else of the file's boards, each once.

    Raises ConfigurationError for an unknown SoC, and where nothing says for which one.
    """
    if socs:
        return list(dict.fromkeys(find_soc(soc).toolkit_platform for soc in socs))
    if file is None:
        raise ConfigurationError("for which SoC? give --soc, as in --soc rk3588; it may be repeated")
    return list(dict.fromkeys(board.platform for board in file.boards))


def build_all(
    model: UserModel, socs: Sequence[str], output: Path | None, *, from_options: bool
) -> list[Made | Failed]:
    """Build for each SoC, several at once, and write the files; in the order of ``socs``.

    ``output``: a file for one SoC, else a folder; the working folder without it. ``from_options``: the model
    was made from options, and messages name these. Raises ToolkitError without a toolkit, ConfigurationError
    for a model that is wrong for every SoC and for a file that cannot be written; what the toolkit says
    against one SoC is Failed.
    """
    import pytest

    from pytest_rknpu.session.builds import own_build
    from pytest_rknpu.toolchain.side_by_side import side_by_side
    from pytest_rknpu.toolchain.status import require_toolkit

    def words(error: BaseException) -> str:
        return in_options(str(error)) if from_options else str(error)

    def make(soc: str) -> Made | Failed:
        try:
            build = own_build(soc, model)
        except (RknpuError, pytest.skip.Exception) as error:  # a skip is the proof that there can be none
            return Failed(soc, words(error))
        write(targets[soc], build.compiled.path.read_bytes())
        return Made(soc, targets[soc], build)

    require_toolkit()
    targets = {soc: target_of(model.name, soc, output, len(socs)) for soc in socs}
    _require_other_files(targets.values(), model)
    try:
        model.require_source()
        _ = model.forms, model.calibration
    except (RknpuError, pytest.skip.Exception) as error:
        raise ConfigurationError(words(error)) from None
    return side_by_side(make, socs)


def target_of(name: str, soc: str, output: Path | None, count: int) -> Path:
    """Where the file for ``soc`` goes. Raises ConfigurationError for one file that is to hold several."""
    file = f"{name}_{soc}{SUFFIX}"
    if output is None:
        return Path(file)
    if output.suffix.lower() != SUFFIX or output.is_dir():
        if output.exists() and not output.is_dir():
            raise ConfigurationError(f"--output {output} is neither a folder nor an {SUFFIX} file")
        return output / file
    if count > 1:
        raise ConfigurationError(f"--output {output} is one file, for {count} SoCs: name a folder")
    return output


def _require_other_files(targets: Iterable[Path], model: UserModel) -> None:
    table = model.table
    made_of = [table.path, table.weights, table.calibration, table.labelled, *table.rknn.values()]
    sources = {Path(source).resolve() for source in made_of if source is not None}
    for target in targets:
        if target.resolve() in sources:
            raise ConfigurationError(
                f"--output {target} is a file that the model is made of; name another one"
            )


def write(target: Path, content: bytes) -> None:
    """Let ``target`` hold ``content``, whole or not at all. Raises ConfigurationError where that fails."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    except OSError as error:
        raise ConfigurationError(f"{target} cannot be written: {error.strerror}") from None

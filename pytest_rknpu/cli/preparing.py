"""The commands that come before a run: is all there, and what becomes of a model."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytest_rknpu.cli import completion
from pytest_rknpu.cli.options import BoardsFileOption, JsonOption
from pytest_rknpu.cli.said import say

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import BoardsFile
    from pytest_rknpu.session.user_models import UserModel


def _file_option(name: str, metavar: str, help: str) -> typer.models.OptionInfo:
    """An option that takes a file which is there."""
    option: typer.models.OptionInfo = typer.Option(
        name, metavar=metavar, exists=True, dir_okay=False, help=help
    )
    return option


def doctor(
    boards_file: BoardsFileOption = None,
    board: Annotated[
        list[str] | None,
        typer.Option(
            "--board",
            metavar="GLOB",
            autocompletion=completion.boards,
            help="Look at these boards only; may be repeated.",
        ),
    ] = None,
    within: Annotated[
        float, typer.Option("--within", metavar="SECONDS", min=1, max=600, help="Limit for each board.")
    ] = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Say what is missing on this host and in boards.toml, and the command or edit that mends it.

    Boards are knocked at, all at once: none is leased, logged in to, or changed. `rknpu probe` looks inside.

    Exit code 0: nothing prevents a run; 1: something does; 2: no such board.

    Example: rknpu doctor --boards lab.toml --board 'opi-*'
    """
    from pytest_rknpu.cli.doctor import examine, examined_json, examined_text
    from pytest_rknpu.cli.shipped import boards_file_in_use, working_folder

    working = working_folder()
    examined = examine(boards_file or boards_file_in_use(working), board or (), working, within)
    say(examined_json(examined) if as_json else examined_text(examined))
    if not examined.usable:
        raise typer.Exit(1)


def compile_model(
    path: Annotated[
        Path | None, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="ONNX or the like.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            autocompletion=completion.models,
            help="Instead of MODEL: a [[model]] of boards.toml, with all that it says.",
        ),
    ] = None,
    soc: Annotated[
        list[str] | None,
        typer.Option(
            "--soc",
            metavar="SOC",
            autocompletion=completion.socs,
            help="Build for it; may be repeated. With --model, default: the SoCs of the boards.",
        ),
    ] = None,
    boards_file: BoardsFileOption = None,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", metavar="TYPE", help="int8, float16 and others (docs/command-line.md)."),
    ] = None,
    calibration: Annotated[
        Path | None,
        _file_option("--calibration", "FILE", "Samples to quantise on: .npz, .npy or a .txt list."),
    ] = None,
    mean: Annotated[
        str | None, typer.Option("--mean", metavar="M,...", help="Subtracted, a number per channel.")
    ] = None,
    std: Annotated[
        str | None, typer.Option("--std", metavar="S,...", help="Divided by, a number per channel.")
    ] = None,
    sparse: Annotated[
        int | None,
        typer.Option(
            "--sparse", metavar="MODE", min=0, max=3, help="The mode that it was pruned by (guide)."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=SHAPE", help="An input, as in input=1,3,224,224,nhwc."),
    ] = None,
    weights: Annotated[
        Path | None, _file_option("--weights", "FILE", "The .caffemodel of a Caffe model.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="An .rknn file, or a folder. Default: here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build .rknn files by RKNN-Toolkit2, and say what the compiler says of them.

    Exit code 0: all are built; 1: for some SoC it is not; 2: no toolkit, or the model or an option is wrong.

    Example: rknpu compile model.onnx --soc rk3588 --soc rk3576 --calibration samples.npz -o build
    """
    from pytest_rknpu.cli.compile import Failed, Wish, build_all, model_of_file, platforms
    from pytest_rknpu.cli.compiled_text import builds_json, builds_text

    wish = None
    if path is not None:
        wish = Wish(path, calibration, dtype, mean, std, sparse, inputs or (), weights)
    _require_one(name, wish, calibration, dtype, mean, std, sparse, inputs, weights)
    file, model = (None, model_of_file(wish)) if wish else _of_boards(boards_file, str(name))
    with _told_on_stderr():
        results = build_all(model, platforms(soc or (), file), output, from_options=wish is not None)
    pruned = model.table.sparse is not None
    say(builds_json(model.name, results) if as_json else builds_text(results, pruned))
    if any(isinstance(result, Failed) for result in results):
        raise typer.Exit(1)


def _require_one(name: str | None, wish: object, *settings: object) -> None:
    """Either a file with options, or a name whose table says it all."""
    if (name is None) is (wish is None):
        raise typer.BadParameter("give MODEL, a file, or --model NAME, one of boards.toml; and not both")
    if name is not None and any(setting is not None for setting in settings):
        raise typer.BadParameter("--model NAME takes its settings from boards.toml; change them there")


def _of_boards(boards_file: Path | None, name: str) -> tuple[BoardsFile, UserModel]:
    from pytest_rknpu.cli.compile import model_of_boards
    from pytest_rknpu.cli.shipped import boards_file_in_use, working_folder
    from pytest_rknpu.inventory.schema import load_boards

    file = load_boards(boards_file or boards_file_in_use(working_folder()))
    return file, model_of_boards(file, name)


@contextlib.contextmanager
def _told_on_stderr() -> Iterator[None]:
    """A build that takes longer than a second says so meanwhile."""
    logger, handler = logging.getLogger("pytest_rknpu.toolchain"), logging.StreamHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)

"""The commands that hand a run in, and check one that was."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from pytest_rknpu.cli.options import JsonOption
from pytest_rknpu.cli.said import say


def bundle(
    run_folder: Annotated[Path, typer.Argument(metavar="DIR", help="What --rknpu-report wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.zip", help="Default: DIR.zip, beside DIR.")
    ] = None,
    must_pass: Annotated[
        Path | None,
        typer.Option("--must-pass", metavar="FILE", help="Requirement ids that must pass, one a line."),
    ] = None,
) -> None:
    """Put a run into one archive that `rknpu verify` can check.

    Example: rknpu bundle rknpu-report --must-pass mustpass.txt
    """
    from pytest_rknpu.cli.shipped import own_files
    from pytest_rknpu.report.bundle import read_must_pass, write_bundle

    ids = read_must_pass(must_pass) if must_pass is not None else ()
    target = output or run_folder.resolve().with_name(f"{run_folder.resolve().name}.zip")
    write_bundle(run_folder, target, ids, own_files())
    say(f"wrote {target}\nnext: rknpu verify {shlex.quote(str(target))}")


def verify(
    archive: Annotated[Path, typer.Argument(metavar="FILE.zip", help="What `rknpu bundle` wrote.")],
    must_pass: Annotated[
        Path | None,
        typer.Option("--must-pass", metavar="FILE", help="Instead of the list that the archive brings."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that an archive is whole, says one thing throughout, and passes what it must.

    Exit code 0: nothing is wrong; 1: the problems are listed.

    Example: rknpu verify rknpu-report.zip
    """
    from pytest_rknpu.cli.bundles import verdict_json, verdict_text, verified

    found = verified(archive, must_pass)
    say(verdict_json(found) if as_json else verdict_text(found))
    if found.problems:
        raise typer.Exit(1)

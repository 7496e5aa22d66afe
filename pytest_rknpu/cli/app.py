"""The commands, and the one place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pytest_rknpu import __version__
from pytest_rknpu.cli import completion, preparing, submitting
from pytest_rknpu.cli.options import BoardsFileOption, JsonOption
from pytest_rknpu.cli.said import say
from pytest_rknpu.errors import ConfigurationError, RknpuError

_USAGE_EXIT_CODE = 2

# Every usage error of typer (unknown command or option, missing or bad value) derives from this class, which
# typer does not export under one name in all its versions.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

application = typer.Typer(
    help="Conformance suites for Rockchip NPUs (RKNN SDK).\n\n"
    "Exit code 0: nothing is wrong; 1: what was asked about is not in order; 2: the command line or a file "
    "is wrong (docs/command-line.md).\n\nExample: rknpu boards",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    What the user can mend is one line on stderr and exit code 2; anything else is a fault of ours and keeps
    its traceback.
    """
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a note in boards.toml may be in any script
    try:
        code = application(args=list(arguments), prog_name="rknpu", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Exit code 1 is what typer gives where it meets the same.
        _discard_output()
        return 1
    except (_UsageError, RknpuError) as error:
        return _complain(error)
    except OSError as error:  # nothing of ours: a full disk behind stdout, say
        _discard_output()
        place = "stdout" if error.filename is None else os.fsdecode(error.filename)
        return _complain(RknpuError(f"{place}: {error.strerror or error}"))
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return code if isinstance(code, int) else 0


def _open_what_is_closed() -> None:
    """Let output that was closed (`>&-`) go nowhere: Python, and pytest after us, have no stream then."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


def _discard_output() -> None:
    """The interpreter flushes stdout once more on its way out: into nothing, then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Exception) -> int:
    message = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(message.split()))
    with contextlib.suppress(OSError):
        typer.echo(f"rknpu: {line}{hint}", err=True)
    return _USAGE_EXIT_CODE


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"rknpu {__version__}")
        raise typer.Exit


@application.callback(invoke_without_command=True)
def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


@application.command()
def boards(
    boards_file: BoardsFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the boards, what each can do, and why one cannot be used. No board is contacted.

    Example: rknpu boards --boards lab.toml --json
    """
    from pytest_rknpu.cli.boards import describe_as_json, describe_as_text
    from pytest_rknpu.cli.shipped import boards_file_in_use, working_folder
    from pytest_rknpu.inventory.schema import load_boards

    file = load_boards(boards_file or boards_file_in_use(working_folder()))
    say(describe_as_json(file) if as_json else describe_as_text(file))


@application.command()
def probe(
    board: Annotated[
        str,
        typer.Option(
            "--board", metavar="NAME", help="A board of the file.", autocompletion=completion.boards
        ),
    ],
    boards_file: BoardsFileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/probe.md).")] = False,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long, if somebody else has it.")
    ] = 60.0,
) -> None:
    """Look at one board: what it is and runs, what is missing there, and the remedy.

    Exit code 0: the suites can run there; 1: something that they need is missing; 2: no such board.

    Example: rknpu probe --board my-board --boards lab.toml
    """
    from pytest_rknpu.cli.probe import board_named, look_at, probed_json, probed_text
    from pytest_rknpu.cli.shipped import boards_file_in_use, working_folder
    from pytest_rknpu.inventory.schema import load_boards

    file = load_boards(boards_file or boards_file_in_use(working_folder()))
    probed = look_at(file, board_named(file, board), wait_s=wait)
    width = shutil.get_terminal_size((110, 24)).columns
    say(probed_json(probed) if as_json else probed_text(probed, width))
    if not probed.usable:
        raise typer.Exit(1)


application.command("doctor")(preparing.doctor)
application.command("compile")(preparing.compile_model)


@application.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Created if it is not there.")] = Path("."),
) -> None:
    """Write a starter boards.toml into DIR (default: here). An existing one is never overwritten.

    Example: rknpu init lab
    """
    from pytest_rknpu.cli.init import write_starter

    written = write_starter(folder)
    word = shlex.quote(str(written))
    say(f"wrote {written}\nnext: rknpu boards --boards {word}; rknpu run --boards {word}")


@application.command(
    "run",
    cls=completion.RunCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def run_suites(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PYTEST_OPTIONS",
            help="Handed to pytest as they are.",
            autocompletion=completion.run_values,
        ),
    ] = None,
) -> None:
    """Run the shipped suites on the boards of ./boards.toml, or else on the shipped emulated ones.

    Every option goes to pytest, and the exit code is pytest's. `rknpu run -- --help` shows what pytest and
    the suites take.

    Example: rknpu run --board 'emu-*' -k sync --rknpu-report rknpu-report
    """
    from pytest_rknpu.cli.run import replace_by_pytest

    replace_by_pytest(arguments or [])


@application.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The run before: report folder or file.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The run after.")],
    as_json: JsonOption = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 where B says nothing of what A showed.")
    ] = False,
) -> None:
    """Say what changed between two runs: latency, memory, accuracy, outcomes, versions.

    RUN is a folder that --rknpu-report wrote, or a results.jsonl. Exit code 0: no regression is shown; 1: a
    regression; 2: nothing could be compared; 3: none is shown, but B was cut off.

    Example: rknpu compare last-good rknpu-report
    """
    from pytest_rknpu.report.comparison import compare_runs
    from pytest_rknpu.report.comparison_text import comparison_json, comparison_text
    from pytest_rknpu.report.timed import read_run

    found = compare_runs(read_run(run_a), read_run(run_b))
    say(comparison_json(found) if as_json else comparison_text(found))
    if found.regressed:
        raise typer.Exit(1)
    if found.cut_off or (strict and found.open_ends):
        raise typer.Exit(3)


@application.command()
def history(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR...", help="Report folders, results.jsonl, archives, or folders of these."
        ),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option("--database", metavar="FILE", help="Keep what was read in this SQLite file."),
    ] = None,
    board: Annotated[
        list[str] | None,
        typer.Option(
            "--board",
            metavar="GLOB",
            help="Only these boards; may be repeated.",
            autocompletion=completion.boards,
        ),
    ] = None,
    requirement: Annotated[
        list[str] | None,
        typer.Option(
            "--requirement",
            metavar="GLOB",
            help="Only these requirements.",
            autocompletion=completion.requirements,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/history.md).")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with trend plots.")
    ] = None,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 where a board's newest run got worse.")
    ] = False,
) -> None:
    """Say what many runs show: since which versions what fails, what is flaky, how latency moved.

    Exit code 0: all was read; 1: see --fail-on-regression; 2: there is nothing to read; 3: a damaged or
    unfinished run was left out.

    Example: rknpu history reports --database history.sqlite --html history.html
    """
    from pytest_rknpu.cli.history import Asked, exit_code, read_history
    from pytest_rknpu.history.as_json import history_json
    from pytest_rknpu.history.text import history_text

    found, collected = read_history(Asked(runs or (), database, board or (), requirement or ()))
    if html is not None:
        from pytest_rknpu.history.page import write_page

        write_page(html, found, collected)
    say(history_json(found, collected) if as_json else history_text(found, collected))
    code = exit_code(found, collected, fail_on_regression)
    if code:
        raise typer.Exit(code)


@application.command("suggest-budgets")
def suggest_budgets(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="Report folder or results.jsonl.")],
    margin: Annotated[
        float, typer.Option("--margin", metavar="PERCENT", help="More than was measured.")
    ] = 10.0,
    evidence: Annotated[
        str, typer.Option("--evidence", metavar="WORD", help="Which results to take; others are no silicon.")
    ] = "hardware",
    as_json: JsonOption = False,
) -> None:
    """Print [[budget]] tables for boards.toml, from what a run measured.

    Example: rknpu suggest-budgets rknpu-report --margin 15 >> boards.toml
    """
    from pytest_rknpu.cli.suggested import suggestion_json
    from pytest_rknpu.report.suggestion import suggest, suggestion_toml
    from pytest_rknpu.report.timed import read_run

    results = read_run(run_folder)
    suggestions = suggest(results, margin=margin / 100, evidence=evidence)
    printed = suggestion_json if as_json else suggestion_toml
    say(printed(results, suggestions, margin / 100, evidence))


@application.command()
def report(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="Report folder or results.jsonl.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Default: where results.jsonl is.")
    ] = None,
) -> None:
    """Write report.html for a run, whole or cut off; a run with --rknpu-report writes it by itself.

    Example: rknpu report rknpu-report
    """
    from pytest_rknpu.report.page import write_page
    from pytest_rknpu.report.timed import read_run

    results = read_run(run_folder)
    folder = output or (run_folder if run_folder.is_dir() else run_folder.parent)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = write_page(folder, results)
    except OSError as error:
        raise ConfigurationError(f"{folder}: no report can be written there: {error.strerror}") from None
    say(f"wrote {written}")


application.command("bundle")(submitting.bundle)
application.command("verify")(submitting.verify)


@application.command()
def waivers(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Default: ./waivers.toml.")] = Path(
        "waivers.toml"
    ),
    run_folder: Annotated[
        Path | None,
        typer.Option("--run", metavar="RUN", help="Say what this run made of them: folder or results.jsonl."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the known failures that are accepted, and until when.

    Exit code 0: none wants attention; 1: one has expired, or the run passes what it says is broken.

    Example: rknpu waivers waivers.toml --run rknpu-report
    """
    from pytest_rknpu.cli.waivers import stand, waivers_json, waivers_text, want_attention
    from pytest_rknpu.waivers import load_waivers

    found = stand(load_waivers(file), run_folder)
    judged = run_folder is not None
    say(waivers_json(found, judged) if as_json else waivers_text(found, judged))
    if want_attention(found):
        raise typer.Exit(1)


@application.command()
def schema() -> None:
    """Print the JSON schema of results.jsonl.

    Example: rknpu schema > results.schema.json
    """
    from pytest_rknpu.cli.shipped import results_schema

    say(results_schema())

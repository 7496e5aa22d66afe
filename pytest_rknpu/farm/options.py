"""The command-line options, ini values and markers of this package."""

from __future__ import annotations

import pytest

_MARKERS = (
    "requirement(*ids): the requirements of the catalogue that the test shows, such as SYNC-01",
    "needs(*capabilities): what a board must have for the test to run on it; else it is skipped with proof",
    "runtimes(*names): the kinds of board that the test is about; it gets no item on others",
    "models(*names): one item per shipped model named, and per [[model]] of boards.toml (fixture model_name)",
    "expects_runtime_errors: error lines in the runtime's log do not fail this test (VER-05)",
)


def add_options(parser: pytest.Parser) -> None:
    """Everything that pytest has to know before it reads the command line."""
    group = parser.getgroup("rknpu", "Rockchip NPU boards")
    add = group.addoption
    add("--boards", dest="rknpu_boards", metavar="FILE", help="boards.toml: the boards there are.")
    add(
        "--board",
        dest="rknpu_board_globs",
        metavar="GLOB",
        action="append",
        help="Run on the boards whose name matches (repeatable).",
    )
    add(
        "--soc",
        dest="rknpu_socs",
        metavar="SOC",
        action="append",
        help="Run on the boards with this SoC (repeatable).",
    )
    add(
        "--tag",
        dest="rknpu_tags",
        metavar="KEY=VALUE",
        action="append",
        help="Run on the boards that have this tag in boards.toml (repeatable: all of them).",
    )
    add(
        "--rknpu-per",
        dest="rknpu_per",
        choices=("board", "soc"),
        default="board",
        help="Run each test on every board (default), or once per SoC on whichever equal board is free.",
    )
    add(
        "--requirement",
        dest="rknpu_requirements",
        metavar="GLOB",
        action="append",
        help="Run only tests that show a matching requirement, such as SYNC-01 or 'MEM-*' (repeatable).",
    )
    add(
        "--rknpu-only",
        dest="rknpu_only",
        metavar="NODEID",
        action="append",
        help="Run only the test with this node id, as results.jsonl and `again:` give it (repeatable).",
    )
    add(
        "--rknpu-report",
        dest="rknpu_report",
        metavar="DIR",
        help="Write results.jsonl and one JUnit file per board there.",
    )
    add(
        "--rknpu-seed",
        dest="rknpu_seed",
        metavar="N",
        type=int,
        help="Seed of all random choices; a random one is drawn and shown by default.",
    )
    add(
        "--rknpu-effort",
        dest="rknpu_effort",
        choices=("quick", "normal", "thorough"),
        default="normal",
        help="Scale iteration counts by 1/10, 1 or 10.",
    )
    add(
        "--rknpu-fault",
        dest="rknpu_faults",
        metavar="NAME",
        action="append",
        help="Seed a fault into emulated boards, to see which requirement catches it (repeatable).",
    )
    add(
        "--rknpu-latency-model",
        dest="rknpu_latency_model",
        metavar="NAME",
        help="Let emulated boards take their time by this model, to try the latency suite out.",
    )
    add(
        "--rknpu-progress",
        dest="rknpu_progress",
        choices=("auto", "off"),
        default="auto",
        help="How far each board is, below pytest's output: at a terminal (auto, the default), or never.",
    )
    add(
        "--rknpu-baseline",
        dest="rknpu_baseline",
        metavar="RUN",
        help="Report folder or results.jsonl of the version set that latency is compared with (LAT-08).",
    )
    add(
        "--rknpu-waivers",
        dest="rknpu_waivers",
        metavar="FILE",
        help="Known failures that are accepted for a time. Default: waivers.toml beside boards.toml, if any.",
    )
    add(
        "--rknpu-losses",
        dest="rknpu_losses",
        metavar="N",
        type=int,
        default=2,
        help="A board that was lost N times gets no more tests in this run (default 2).",
    )
    add(
        "--rknpu-durations",
        dest="rknpu_durations",
        metavar="RUN",
        help="Report folder or results.jsonl of an earlier run: with -n, its longest tests come first.",
    )
    add(
        "--rknpu-patience",
        dest="rknpu_patience",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="How long a lost board may take to be reached again, as it may be starting (default 60).",
    )
    add(
        "--rknpu-wait",
        dest="rknpu_wait",
        metavar="SECONDS",
        type=float,
        default=600.0,
        help="How long to wait for a board that somebody else holds (default 600).",
    )
    parser.addini("rknpu_boards", "boards.toml, relative to the ini file, where --boards is not given.")
    parser.addini("rknpu_baseline", "The same as --rknpu-baseline, relative to the ini file.")
    parser.addini("rknpu_durations", "The same as --rknpu-durations, relative to the ini file.")
    parser.addini("rknpu_waivers", "The same as --rknpu-waivers, relative to the ini file.")


def add_markers(config: pytest.Config) -> None:
    """Register the markers, for ``--markers`` and ``--strict-markers``."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)

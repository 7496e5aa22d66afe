"""The `rknpu` command: what boards there are, a starter boards.toml, a run of the shipped suites."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``rknpu`` command; ends the process with its exit code."""
    from pytest_rknpu.cli.app import run

    sys.exit(run(sys.argv[1:]))

"""A line for the people at the terminal, from wherever in the run it comes."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest


def announce(config: pytest.Config, text: str) -> None:
    """Show one line now, whatever is being captured.

    An xdist worker's terminal reporter writes to nowhere, while its stderr is that of its controller.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        if terminal is None or hasattr(config, "workerinput"):
            print(f"rknpu: {text}", file=sys.stderr, flush=True)
            return
        terminal.ensure_newline()
        terminal.write_line(f"rknpu: {text}", flush=True)

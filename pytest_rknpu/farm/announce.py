"""A line for the people at the terminal, from wherever in the run it comes."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest

_ERASE_BELOW = "\x1b[J"  # what the controller shows there of all boards; it shows it again


def announce(config: pytest.Config, text: str) -> None:
    """Show one line now, whatever is being captured.

    An xdist worker's terminal reporter writes to nowhere, while its stderr is that of its controller.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        worker = getattr(config, "workerinput", None)
        if terminal is None or worker is not None:
            below = _ERASE_BELOW if worker and worker.get("rknpu_live") and sys.stderr.isatty() else ""
            print(f"{below}rknpu: {text}", file=sys.stderr, flush=True)
            return
        terminal.ensure_newline()
        terminal.write_line(f"rknpu: {text}", flush=True)
        live = config.pluginmanager.getplugin("rknpu-live")
        if live is not None:
            live.show()

"""The ``under_load`` step: commands while other processes keep the CPU and the memory bus busy (LAT-07).

A load process copies memory back and forth for ever. It dies with the process that started it (also when
that is killed), and after an hour in any case: a measurement that takes longer, or whose load was killed (for
want of memory, say), is refused.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from typing import Any, Iterator

from .compiler import Compiler, Step, run_body
from .failures import LibraryFailure

READY_S = 20.0
"""Seconds until a load process has to be at work."""
LONGEST_S = 3600

PROGRAM = """
import ctypes, os, signal, sys
try:
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
except (OSError, AttributeError):
    pass
parent, size, seconds = map(int, sys.argv[1:])
if os.getppid() != parent:
    sys.exit(1)
signal.alarm(seconds)
source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
os.write(1, b"ready")
while os.getppid() == parent:
    ctypes.memmove(target, source, size)
    ctypes.memmove(source, target, size)
"""


def build_under_load(arguments: dict[str, Any], compiler: Compiler) -> Step:
    """Run the commands while ``processes`` processes copy ``memory_bytes`` each (0: one per CPU)."""
    body = compiler.body(arguments["commands"])
    processes, size = arguments["processes"], arguments["memory_bytes"]

    def step(iteration: int) -> None:
        with loaded(processes or os.cpu_count() or 1, size):
            run_body(body, iteration)

    return step


@contextlib.contextmanager
def loaded(processes: int, size: int) -> Iterator[None]:
    """Load from the moment when all processes copy until the end of the block."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            started.append(_start(size))
        for process in started:
            _await(process)
        yield
        for process in started:
            if process.poll() is not None:
                raise LibraryFailure(f"a load process ended too early (exit code {process.returncode})")
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
        for process in started:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _start(size: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM, str(os.getpid()), str(size), str(LONGEST_S)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _await(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    # Its five bytes come in one piece, or the end of the pipe does.
    if not select.select([process.stdout], [], [], READY_S)[0]:
        raise LibraryFailure(f"a load process did not start within {READY_S:g} s")
    if process.stdout.read(5) != b"ready":
        raise LibraryFailure(f"a load process did not start (exit code {process.wait()})")

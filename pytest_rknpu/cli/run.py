"""`rknpu run`: pytest on the shipped suites, from the working folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pytest_rknpu.cli.shipped import boards_file_in_use, suites_folder, working_folder

_SETTINGS = Path(__file__).with_name("pytest.ini")


def pytest_arguments(working_folder: Path, suites: Path, boards: Path, extra: Sequence[str]) -> list[str]:
    """Return pytest's arguments.

    Root folder and cache are the working folder's, not those of the suites, which may lie in site-packages.
    ``extra`` comes last, so that it can override what stands before.
    """
    return [
        f"--config-file={_SETTINGS}",
        f"--rootdir={working_folder}",
        f"--override-ini=cache_dir={working_folder / '.pytest_cache'}",
        f"--boards={boards}",
        str(suites),
        *extra,
    ]


def replace_by_pytest(extra: Sequence[str]) -> NoReturn:
    """Become pytest: signals, terminal and exit code are its own.

    A new interpreter, since pytest can rewrite the assertions of this package only if it imports it itself.
    """
    folder = working_folder()
    arguments = pytest_arguments(folder, suites_folder(), boards_file_in_use(folder), extra)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments])

"""What a run is told that needs boards and has no boards.toml: where one was looked for, and what to do."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

NAME = "boards.toml"


@dataclass(frozen=True)
class Sought:
    """Where a boards.toml may be named. ``folder`` is that in which pytest was started."""

    folder: Path = Path()
    ini_file: Path | None = None
    by_option: bool = False

    def where_not(self) -> str:
        """For a run to which nothing names one. What lies in the folder is not taken unasked."""
        ini = f"{self.ini_file} has no rknpu_boards" if self.ini_file else "there is no ini file of pytest"
        looked = f"this run needs boards, and nothing names a {NAME}: --boards is not given, and {ini}"
        if (self.folder / NAME).is_file():
            return f"{looked}. There is one in {self.folder}: give --boards {NAME}"
        return (
            f"{looked}; nor is there one in {self.folder}. `rknpu init` writes a starter {NAME} there, "
            f"--boards FILE names another; `rknpu run` has emulated boards without any"
        )

    def not_there(self, path: Path) -> str:
        """For a named file that is missing."""
        by = "--boards" if self.by_option else f"rknpu_boards in {self.ini_file}"
        folder = os.path.relpath(path.parent, self.folder)
        command = "rknpu init" if folder == "." else shlex.join(["rknpu", "init", folder])
        return (
            f"{path}: no such file; {by} names it. `{command}` writes a starter {NAME} there, "
            "--boards FILE names another"
        )

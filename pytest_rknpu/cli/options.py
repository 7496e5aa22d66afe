"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BoardsFileOption = Annotated[
    Path | None,
    typer.Option("--boards", metavar="FILE", help="Default: ./boards.toml, else the one that is shipped."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON (docs/command-line.md).")]

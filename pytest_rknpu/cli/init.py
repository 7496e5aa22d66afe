"""`rknpu init`: a starter boards.toml."""

from __future__ import annotations

from pathlib import Path

from pytest_rknpu.cli.shipped import shipped_boards_file
from pytest_rknpu.errors import ConfigurationError


def write_starter(folder: Path) -> Path:
    """Copy the shipped boards.toml into ``folder``, which is created if it is missing; returns the new file.

    Raises ConfigurationError if there is one already, or if the folder cannot be written to.
    """
    target = folder / "boards.toml"
    text = shipped_boards_file().read_text(encoding="utf-8")
    if target.exists():
        raise ConfigurationError(f"{target} exists and is left as it is; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:  # "x": two people may do this at once
            file.write(text)
    except OSError as error:
        raise ConfigurationError(f"{target} cannot be written: {error.strerror}") from None
    return target

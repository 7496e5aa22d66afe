"""Where the suites, the starter boards.toml and the results schema are, in a clone or in a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest_rknpu
from pytest_rknpu.errors import ConfigurationError

_PACKAGE = Path(pytest_rknpu.__file__).resolve().parent


def suites_folder(package: Path = _PACKAGE) -> Path:
    """Return the folder of the shipped suites.

    A wheel carries them inside the package; an editable install of a clone finds them beside it. Raises
    ConfigurationError where neither is there.
    """
    for folder in (package / "_suites", package.parent / "suites"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"the suites are neither in {package} nor beside it; install pytest-rknpu again")


def shipped_boards_file(package: Path = _PACKAGE) -> Path:
    """Return the shipped boards.toml. Raises ConfigurationError where it is missing."""
    for file in (package / "_suites" / "boards.toml", package.parent / "boards.toml"):
        if file.is_file():
            return file
    raise ConfigurationError(f"the shipped boards.toml is not with {package}; install pytest-rknpu again")


def working_folder() -> Path:
    """Return the working folder. Raises ConfigurationError where it was removed meanwhile."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigurationError(f"the working folder: {error.strerror}; change to another one") from None


def boards_file_in_use(folder: Path) -> Path:
    """Return ``folder``'s boards.toml if it has one, else the shipped one."""
    own = folder / "boards.toml"
    return own if own.exists() else shipped_boards_file()


def results_schema() -> str:
    """Return the JSON schema of results.jsonl as text. Raises ConfigurationError where it is missing."""
    file = _PACKAGE / "report" / "results.schema.json"
    try:
        return file.read_text(encoding="utf-8").rstrip()
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}; install pytest-rknpu again") from None


def own_files() -> dict[str, Path]:
    """Every file of this package and of the suites that it runs, by a name that is the same everywhere."""
    found = {}
    for prefix, folder in (("pytest_rknpu", _PACKAGE), ("suites", suites_folder())):
        for path in sorted(folder.rglob("*")):
            hidden = "__pycache__" in path.parts or (prefix == "pytest_rknpu" and "_suites" in path.parts)
            if path.is_file() and not hidden:
                found[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path
    return found

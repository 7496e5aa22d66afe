"""What a command line calls: programs with their arguments, and whether this project's take them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement

from pytest_rknpu.cli.app import application

CLONE = Path(__file__).parents[2]
_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]  # see pytest_rknpu/cli/app.py
_OPERATORS = {"&&", "||", "|", ";", "&"}


def calls(text: str) -> Iterator[list[str]]:
    """The programs of a command line, each with its arguments; assignments and redirections are left out."""
    lexer = shlex.shlex(text.partition("\n")[0], posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for token in (*lexer, ";"):
        if token not in _OPERATORS:
            words.append(token)
            continue
        while words and re.match(r"[A-Z_]+=", words[0]):
            del words[0]
        redirected = next((at for at, word in enumerate(words) if re.match(r"[<>]+$", word)), len(words))
        if words[:redirected]:
            yield words[:redirected]
        words = []


def complaint(words: list[str], config: pytest.Config) -> str | None:
    """Why one of our own programs would not take these words; None where it would, or is none of ours."""
    program = words[0].rpartition("/")[2]
    if program in ("python", "python3") and words[1:2] == ["-m"]:
        module, arguments = words[2], words[3:]
        if module == "pytest":
            return _pytest(arguments, config)
        return None if find_spec(module) else f"there is no module {module}"
    if program == "rknpu":
        return _rknpu(words[1:], config)
    if program == "pytest":
        return _pytest(words[1:], config)
    if program == "pip" and words[1:2] == ["install"]:
        return next(filter(None, map(_installed, words[2:])), None)
    return None


def _rknpu(arguments: list[str], config: pytest.Config) -> str | None:
    name, *rest = arguments or ["--help"]
    if name == "run":
        return _pytest(rest, config)
    commands = typer.main.get_group(application).commands
    if name.startswith("-") or name.isupper():  # an option of all commands, a placeholder
        return None
    if name not in commands:
        return f"rknpu has no command {name}"
    if not rest:  # its name alone, as a text speaks of it
        return None
    try:
        commands[name].make_context(name, rest)
    except typer.Exit:  # --help
        return None
    except _USAGE_ERROR as error:
        return None if "does not exist" in str(error) else str(error)  # a file: there are none here
    return None


def _pytest(arguments: list[str], config: pytest.Config) -> str | None:
    known = config._parser.optparser._option_string_actions
    for word in arguments:
        option = word.partition("=")[0]
        if option.startswith("-") and option not in known and option[:2] not in known:
            return f"pytest has no option {option}"
    missing = [word for word in arguments if re.match(r"(suites|tests)(/|$)", word)]
    return next((f"there is no {word}" for word in missing if not (CLONE / word).exists()), None)


def _installed(word: str) -> str | None:
    """Whether the extras exist that a word behind ``pip install`` asks of this project."""
    ours = re.match(r"(\.|pytest-rknpu)(\[.*\])$", word)
    if ours is None:
        return None
    known = set(re.findall(r"^(\w+) = \[", _optional_dependencies(), re.MULTILINE))
    unknown = Requirement(f"pytest-rknpu{ours[2]}").extras - known
    return f"there is no extra {', '.join(unknown)}" if unknown else None


def _optional_dependencies() -> str:
    text = (CLONE / "pyproject.toml").read_text(encoding="utf-8")
    return text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]

"""The one way to stdout."""

from __future__ import annotations

import typer


def say(text: str) -> None:
    """Print lines without anything that a terminal would obey: files, boards and models may say anything."""
    typer.echo("".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text))

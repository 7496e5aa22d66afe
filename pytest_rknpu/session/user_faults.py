"""A bad model of the user's is the user's to mend: one kind of error, which names the ``[[model]]``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_rknpu.errors import ConfigurationError, ModelError, ToolkitError, UserModelError


def table_of(name: str, key: str | None = None) -> str:
    """The place that a sentence is about: ``[[model]] "name", key "key"``."""
    return f'[[model]] "{name}"' + (f', key "{key}"' if key else "")


@contextmanager
def users_fault(name: str) -> Iterator[None]:
    """Around what reads, builds or runs the user's model ``name``: what goes wrong there is UserModelError.

    Not around calls that need a board: there it may be the board's fault.
    """
    try:
        yield
    except (ConfigurationError, ModelError, ToolkitError) as error:
        text, place = str(error), table_of(name)
        raise UserModelError(text if text.startswith(place) else f"{place}: {text}") from error

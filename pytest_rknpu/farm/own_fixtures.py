"""Whether a name that a test uses stands for this package's fixture: a project may well have its own."""

from __future__ import annotations

from typing import Any

import pytest

_FIXTURES_MODULE = "pytest_rknpu.fixtures"


def is_ours(metafunc: pytest.Metafunc, name: str) -> bool:
    """Whether ``name`` is this package's fixture in a test function: no parameter, and not overridden."""
    for marker in metafunc.definition.iter_markers("parametrize"):
        names = marker.args[0] if marker.args else marker.kwargs.get("argnames", ())
        if name in ([word.strip() for word in names.split(",")] if isinstance(names, str) else names):
            return False
    # There is no public way to ask which fixture a name stands for.
    return defined_here(metafunc._arg2fixturedefs.get(name))


def defined_here(definitions: Any) -> bool:
    """Whether the last of pytest's fixture definitions, the one that counts, is of this package."""
    return bool(definitions) and definitions[-1].func.__module__ == _FIXTURES_MODULE

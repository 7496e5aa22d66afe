"""The conformance suites as modules, so that their tests can be held against made-up bad input."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

SUITES = Path(__file__).parents[1] / "suites"


@cache
def suite(path: str) -> ModuleType:
    """The module of ``suites/<path>``."""
    spec = importlib.util.spec_from_file_location("suite_" + path.replace("/", "_")[:-3], SUITES / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their modules up
    spec.loader.exec_module(module)
    return module

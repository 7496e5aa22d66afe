"""The test functions of suites/sparse, to be run on stand-ins for a board."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from pytest_rknpu.inventory.socs import find_soc

SUITES = Path(__file__).parents[2] / "suites" / "sparse"


def suite(name: str) -> ModuleType:
    """The module ``suites/sparse/test_sparse_NAME.py``."""
    return suite_file(f"test_sparse_{name}.py")


def suite_file(name: str) -> ModuleType:
    """The module of a file of ``suites/sparse``."""
    spec = importlib.util.spec_from_file_location(f"sparse_{name[:-3]}_under_test", SUITES / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def board(soc: str, runtime: str = "simulator") -> Any:
    """What the tests read of a live board."""
    described = SimpleNamespace(name=f"sim-{soc}", soc=soc, platform=soc, runtime=runtime)
    return SimpleNamespace(board=described, session=SimpleNamespace(soc=find_soc(soc)))

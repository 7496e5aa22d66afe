"""Real build logs that other tests keep, for faults that doctor them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TESTS = Path(__file__).parents[1]
_LOG = "digits_cnn-int8-rk3588-2.5.0"


@cache
def _module(folder: str, name: str) -> Any:
    sys.path.insert(0, str(TESTS / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(TESTS / folder))


def stored_log() -> Any:
    """The classifier's log for rk3588: ``plan`` and the fused ``graph``."""
    found = _module("toolchain", "build_logs").stored(_LOG)
    return SimpleNamespace(plan=found.log.plan, graph=found.graph)


def sparse_plan(name: str, *, texts: Mapping[str, str] | None = None, **ratios: str) -> Any:
    """The plan of a log of the sparse probes, with other texts, or another SparseRatio for some layers."""
    plan_of: Callable[..., Any] = _module("sparse", "real_logs").plan_of
    return plan_of(name, *(texts or {}).items(), **ratios)

"""Many runs at once: since when what fails, what is flaky, how latency moved."""

from __future__ import annotations

from pytest_rknpu.history.collecting import Collected, collect
from pytest_rknpu.history.finding import LeftOut
from pytest_rknpu.history.overview import BoardHistory, History, overview
from pytest_rknpu.history.store import HistoryDatabase

__all__ = ["BoardHistory", "Collected", "History", "HistoryDatabase", "LeftOut", "collect", "overview"]

"""Models that are shipped compiled: a lab without RKNN-Toolkit2 tests boards too (SYNC, MEM, ERR, VER-06)."""

from __future__ import annotations

from pytest_rknpu.prebuilt.predicted import Predicted, baseline_for
from pytest_rknpu.prebuilt.store import NEWEST, Prebuilt, load, versions_of

__all__ = ["NEWEST", "Prebuilt", "Predicted", "baseline_for", "load", "versions_of"]

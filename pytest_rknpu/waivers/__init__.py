"""Known failures that are accepted for a time: waivers.toml, and what becomes of it in a run."""

from __future__ import annotations

from pytest_rknpu.waivers.standing import Standing, State, standings
from pytest_rknpu.waivers.table import FILE_NAME, Waiver, WaiversFile, load_waivers

__all__ = ["FILE_NAME", "Standing", "State", "Waiver", "WaiversFile", "load_waivers", "standings"]

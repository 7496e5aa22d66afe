"""The rig proves itself: broken in one way at a time, its own checks turn red."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.vendor_rig.checks import (
    check_bounds,
    check_cores_agree,
    check_every_byte_counts,
    check_outputs_are_written,
    check_syncs_matter,
    check_ways_agree,
)
from tests.vendor_rig.conftest import MakeThinPath

Check = Callable[[MakeThinPath], None]

CHECKS: dict[str, Check] = {
    "every byte counts": lambda path: check_every_byte_counts(path, "rk3588", "probe_chain"),
    "ways agree": lambda path: check_ways_agree(path, "rk3588", "probe_pointwise"),
    "cores agree": check_cores_agree,
    "outputs are written": lambda path: check_outputs_are_written(path, "rk3588"),
    "syncs matter": lambda path: check_syncs_matter(path, "rk3588"),
    "bounds": lambda path: check_bounds(path, "rk3588"),
}

# How the rig is broken, and the check that must turn red for it. Others may, too.
BROKEN = {
    "no-shadow": "syncs matter",
    "no-dirty-lines": "every byte counts",
    "no-from-device": "every byte counts",
    "tasks-reordered": "every byte counts",
    "wrong-atom": "every byte counts",
    "shifted-destination": "outputs are written",
    "no-bounds": "bounds",
}


@pytest.mark.parametrize("way", list(BROKEN))
def test_a_broken_rig_turns_its_check_red(thin_path: MakeThinPath, way: str) -> None:
    def broken(soc: str = "rk3588", settings: dict[str, str] | None = None) -> object:
        return thin_path(soc, {**(settings or {}), "BROKEN": way})

    with pytest.raises(AssertionError):
        CHECKS[BROKEN[way]](broken)

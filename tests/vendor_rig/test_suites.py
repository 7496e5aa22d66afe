"""The suites on the vendor's own runtime: green, but for what is known of librknnrt 1.5.2 (findings.toml).

By default all of them on RK3588, and on RK3566 what differs there; with ``RKNPU_TEST_FULL=1`` all on both.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.vendor_rig.conftest import FULL, MakeBoard, RunSuites
from tests.vendor_rig.parts import HERE

ALL = ("sync", "memory", "errors", "versions", "accuracy")
PART = ("sync/test_run_alone.py::test_a_run_covers_every_line", "memory/test_layouts.py")
SHOWN = {
    "rk3588": {
        *(
            "SYNC-04",
            "MEM-01",
            "MEM-02",
            "MEM-06",
            "MEM-07",
            "MEM-08",
            "MEM-10",
            "MEM-11",
            "ACC-04",
            "ERR-01",
            "ERR-05",
            "ERR-06",
        ),
        *("VER-01", "VER-02", "VER-03", "VER-04", "VER-05"),
    },
    "rk3566": {"SYNC-04", "MEM-09"},
}
# What the runtime does not export; each skip for want of it says so.
MISSING = re.compile(r"does not export (rknn_mem_sync|rknn_create_mem2)\b")
NEEDS_A_SYNC = {f"SYNC-{number:02}" for number in range(1, 17)} - {"SYNC-04", "SYNC-11", "SYNC-15"}


@pytest.fixture
def waivers(tmp_path: Path) -> Path:
    """findings.toml as waivers that end in a month."""
    end = (datetime.now(timezone.utc) + timedelta(days=30)).date()
    text = (HERE / "findings.toml").read_text()
    file = tmp_path / "waivers.toml"
    file.write_text(re.sub(r"^(reason = .*)$", rf"\1\nexpires = {end}", text, flags=re.MULTILINE))
    return file


@pytest.mark.parametrize("soc", ["rk3588", "rk3566"])
def test_the_suites_are_green(board: MakeBoard, run_suites: RunSuites, waivers: Path, soc: str) -> None:
    words = ALL if FULL or soc == "rk3588" else PART
    run = run_suites(board(soc), *words, "--rknpu-effort=quick", f"--rknpu-waivers={waivers}")
    outcomes = run.outcomes()
    assert set(outcomes) <= {"pass", "skip", "waived"}, run.text[-6000:]
    assert run.exit_code == 0, run.text[-3000:]
    assert SHOWN[soc] <= run.requirements("pass"), outcomes
    # Tests of toolkit and models ask no board.
    assert {record["evidence"] for record in run.records if record["board"]} == {"vendor-runtime"}
    for record in run.records:
        if record["outcome"] == "skip" and NEEDS_A_SYNC & set(record["requirement"]):
            assert MISSING.search(record["message"]), record

"""No driver at all: VER-04 says so with the remedy, and the library tries to make a device node by itself."""

from __future__ import annotations

import os
from pathlib import Path

from tests.vendor_rig.conftest import MakeBoard, MakeThinPath, RunSuites
from tests.vendor_rig.thin_path import random_inputs

ABSENT = {"FAULTS": "driver-absent"}


def test_ver_04_fails_with_the_remedy(board: MakeBoard, run_suites: RunSuites) -> None:
    run = run_suites(board("rk3588", ABSENT), "versions/test_identity.py")
    (record,) = (record for record in run.records if record["requirement"] == ["VER-04"])
    assert record["outcome"] == "fail"
    assert "none of 0 DRM devices is driven by rknpu" in record["message"]
    assert "CONFIG_ROCKCHIP_RKNPU" in record["message"], "the remedy"
    assert run.exit_code != 0


def test_the_library_refuses_in_its_own_words(thin_path: MakeThinPath) -> None:
    before = _device_nodes()
    seen = thin_path("rk3588", ABSENT).run("probe_chain", random_inputs(4096, 1))
    assert seen.code("init") == -1
    assert "failed to open rknpu module" in seen.log
    assert _device_nodes() == before, "nothing on this machine was touched"


def test_without_the_stand_in_nothing_starts(board: MakeBoard) -> None:
    """Else the library would look for a driver, and make device nodes, on the machine that tests run on."""
    rig = board()
    text = rig.program.read_text()
    assert text.index("no stand-in driver") < text.index("unshare") < text.rindex("qemu")
    broken = text.replace("-stand-in.so ]", "-gone.so ]")
    rig.program.write_text(broken)
    assert broken != text
    assert os.waitstatus_to_exitcode(os.system(f"{rig.program} /bin/true 2>/dev/null")) == 125


def _device_nodes() -> list[str]:
    folder = Path("/dev/dri")
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

"""RKNN-Toolkit-Lite2 2.5.0, as PyPI has it for aarch64, on the vendor's runtime: ACC-03."""

from __future__ import annotations

import pytest

from tests.vendor_rig import parts
from tests.vendor_rig.conftest import FULL, MakeBoard, RunSuites

PACKAGES = ("rknn-toolkit-lite2==2.5.0", "numpy==1.26.4", "psutil==7.2.2", "ruamel.yaml==0.19.1")
TEST = "accuracy/test_lite2.py"
WORDS = (TEST,) if FULL else (f"{TEST}::test_equal_bytes_in_every_input_form", "-k=digits_cnn")


def test_it_equals_the_general_api(board: MakeBoard, run_suites: RunSuites) -> None:
    try:
        folder = parts.packages(*PACKAGES)
    except parts.CannotBeHad as error:
        pytest.skip(str(error))
    rig = board("rk3588", python=str(folder))
    run = run_suites(rig, *WORDS, "--rknpu-effort=quick")
    assert {record["outcome"] for record in run.records} == {"pass"}, run.text[-6000:]
    assert run.requirements("pass") == {"ACC-03"}
    assert all("RKNN-Toolkit-Lite2 2.5.0" in record["notes"] for record in run.records)

"""The request ``lite``: what it takes, where it looks for the package, what it says where there is none."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent import lite
from pytest_rknpu.agent.failures import ProgramFailure
from pytest_rknpu.agent.readers import Absent, Root
from tests.agent.conftest import MODEL, Ask

SHA256 = hashlib.sha256(MODEL).hexdigest()
INPUT: dict[str, Any] = {"data": b"\0" * 4, "dtype": "int8", "shape": [1, 4]}
CASE: dict[str, Any] = {"inputs": [INPUT], "data_format": None, "pass_through": False}


def package(root: Path, folder: str, version: str = "2.3.2") -> None:
    (root / folder / f"rknn_toolkit_lite2-{version}.dist-info").mkdir(parents=True)


@pytest.mark.parametrize(
    "folder",
    [
        "usr/lib/python3/dist-packages",
        "usr/local/lib/python3.10/dist-packages",
        "usr/local/lib/python3.11/site-packages",
        "root/.local/lib/python3.9/site-packages",
        "home/rock/.local/lib/python3.11/site-packages",
        "home/rock/venv/lib/python3.11/site-packages",
        "home/rock/rknn_env/lib/python3.11/site-packages",
        "opt/rknn/lib/python3.8/site-packages",
    ],
)
def test_the_package_is_found_below_a_root(tmp_path: Path, folder: str) -> None:
    package(tmp_path, folder)
    assert lite.installed_version(Root(str(tmp_path))) == "2.3.2"


def test_another_pythons_package_is_pointed_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "home/rock/venv/lib/python3.9/site-packages")
    root = Root(str(tmp_path))
    monkeypatch.setattr(root, "is_live", True)
    with pytest.raises(
        Absent, match=r"not installed for .*; it is in /home/rock/venv/lib/python3\.9/.*`python`"
    ):
        lite.installed_version(root)


def test_a_board_without_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/python3/dist-packages/rknn_toolkit_lite2-x").mkdir(parents=True)
    with pytest.raises(Absent, match="none of its own"):
        lite.installed_version(Root(str(tmp_path)))
    with pytest.raises(Absent, match=f"not installed for {sys.executable}"):
        lite.installed_version(Root("/"))


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        [{}],
        [{**CASE, "more": 1}],
        [{**CASE, "data_format": "nc1hwc2"}],
        [{**CASE, "pass_through": 1}],
        [{**CASE, "inputs": INPUT}],
        [{**CASE, "inputs": [{**INPUT, "dtype": "float64"}]}],
        [{**CASE, "inputs": [{**INPUT, "data": "text"}]}],
        [{**CASE, "inputs": [{**INPUT, "shape": [0]}]}],
        [{**CASE, "inputs": [{**INPUT, "shape": [True]}]}],
        [{**CASE, "inputs": [{"data": b""}]}],
    ],
)
def test_malformed_cases_are_refused(agent: Ask, wrong: Any) -> None:
    reply = agent("lite", model=SHA256, cases=wrong)
    assert reply["error"]["kind"] == "program"
    assert reply["error"]["message"].startswith("lite: ")


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.binary(), st.lists, max_leaves=5)
)
def test_no_cases_make_the_check_raise_anything_else(value: Any) -> None:
    for cases in (value, [value], [{"inputs": value, "data_format": None, "pass_through": False}]):
        try:
            lite.check_cases(cases, {})
        except ProgramFailure:
            continue


def test_a_model_that_is_not_stored_is_refused(agent: Ask) -> None:
    reply = agent("lite", model="0" * 64, cases=[CASE])
    assert "is not stored on the board" in reply["error"]["message"]


def test_without_the_package_the_request_says_so(agent: Ask) -> None:
    reply = agent("lite", model=SHA256, cases=[CASE])
    assert reply["error"]["kind"] == "lite"
    assert "rknn-toolkit-lite2 is not installed" in reply["error"]["message"]


def test_before_start_the_request_is_refused() -> None:
    from pytest_rknpu.agent import sources
    from pytest_rknpu.agent.log_capture import LogCapture
    from pytest_rknpu.agent.serve import Agent

    reply = Agent(LogCapture(), sources).handle({"request": "lite", "model": SHA256, "cases": [CASE]})
    assert "send start first" in reply["error"]["message"]


def test_a_package_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    request = {"path": [str(tmp_path)], "model": "", "core_masks": [0], "cases": [CASE]}
    (tmp_path / "rknnlite").mkdir()
    (tmp_path / "rknnlite/__init__.py").write_text("import rknn_module_that_nobody_has\n")
    path = list(sys.path)
    try:
        reply = lite.work(request)
    finally:
        sys.path[:] = path
        sys.modules.pop("rknnlite", None)
    assert reply["error"]["kind"] == "lite"
    assert "rknn_module_that_nobody_has" in reply["error"]["message"]
    assert "with pip" in reply["error"]["message"]


def test_loaded_runtime_libraries_are_told(fake_runtime: str) -> None:
    import ctypes

    kept = ctypes.CDLL(fake_runtime)
    assert kept is not None
    assert str(Path(fake_runtime).resolve()) in lite.loaded_libraries()

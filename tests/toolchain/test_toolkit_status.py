"""Whether the toolkit is there is found without importing it, and said in one line with the command."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain import CompileOptions, compile_model, simulate, status, toolkit_status

COMMAND = "pip install 'pytest-rknpu[toolkit]'"


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(status.metadata, "version", missing)


def test_installed(toolkit: Path) -> None:
    assert toolkit_status() == status.ToolkitStatus("9.9.9", "", COMMAND)


@pytest.mark.usefixtures("absent")
def test_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(status.sys, "version_info", (3, 11, 0))
    assert toolkit_status() == status.ToolkitStatus(None, "RKNN-Toolkit2 is not installed", COMMAND)


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize(
    ("machine", "python", "words"),
    [("riscv64", (3, 11, 0), "Python 3.11 on linux riscv64"), ("x86_64", (3, 13, 0), "Python 3.13 on linux")],
)
def test_absent_where_it_has_no_build(
    monkeypatch: pytest.MonkeyPatch, machine: str, python: tuple[int, int, int], words: str
) -> None:
    monkeypatch.setattr(status.platform, "machine", lambda: machine)
    monkeypatch.setattr(status.sys, "version_info", python)
    monkeypatch.setattr(status.sys, "platform", "linux")
    found = toolkit_status()
    assert found.version is None
    assert words in found.reason
    assert "\n" not in found.reason


def test_installed_beside_a_setuptools_that_is_too_new(
    toolkit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        return None if name == "pkg_resources" else real(name, package)

    monkeypatch.setattr(status.util, "find_spec", find)
    found = toolkit_status()
    assert found.version is None
    assert "pkg_resources" in found.reason


@pytest.mark.usefixtures("absent")
def test_compiling_without_it_names_the_command() -> None:
    model = models.load("probe_pointwise")
    with pytest.raises(
        ToolkitError, match=r"not installed.*; install it with: pip install 'pytest-rknpu\[toolkit\]'"
    ):
        compile_model(model.float_onnx, CompileOptions("rk3588"))
    with pytest.raises(ToolkitError, match="install it with"):
        simulate(model.float_onnx, CompileOptions("rk3588"), [model.calibration[:1]])


def test_asking_imports_neither_the_toolkit_nor_torch() -> None:
    code = (
        "import sys; from pytest_rknpu.toolchain import toolkit_status; toolkit_status(); "
        "print({'rknn', 'torch', 'pkg_resources'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"

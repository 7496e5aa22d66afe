"""What `rknpu doctor` says of the host: Python, packages, the toolkit, folders."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from pytest_rknpu.cli.doctor import packages as module
from pytest_rknpu.cli.doctor.bounded import why_not_reached
from pytest_rknpu.cli.doctor.finding import Severity
from pytest_rknpu.cli.doctor.folders import folder, folders
from pytest_rknpu.cli.doctor.packages import packages, python_and_packages, toolkit
from pytest_rknpu.toolchain import ToolkitStatus, toolkit_status

HERE = ToolkitStatus("9.9.9", "")


def test_this_installation_is_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    found = {one.what: one for one in python_and_packages()}
    assert {one.severity for one in found.values()} == {Severity.OK}
    assert f"pytest {pytest.__version__}" in found["packages"].says
    assert "rknn-toolkit2" not in found["packages"].says, "extras are not asked for"
    assert sys.executable in found["python"].says


def test_packages_that_are_missing_or_too_old() -> None:
    required = ("pytest>=999", "no-such-package>=1", "numpy>=1", "torch>=999; extra == 'train'")
    found = packages(map(Requirement, required))
    assert found.severity is Severity.PROBLEM
    assert found.says == f"pytest {pytest.__version__} is not >=999; no-such-package is missing"
    assert found.mend == "pip install 'pytest>=999' 'no-such-package>=1'"


def test_a_python_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.platform, "python_version", lambda: "3.9.2")
    (found,) = (one for one in python_and_packages() if one.what == "python")
    assert found.severity is Severity.PROBLEM
    assert "3.9.2" in found.says
    assert "python3.12 -m venv" in str(found.mend)


def test_a_package_that_is_not_installed_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISTRIBUTION", "no-such-package")
    (found,) = python_and_packages()
    assert (found.what, found.severity) == ("packages", Severity.PROBLEM)


def test_plugins_that_pytest_is_told_not_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (found,) = (one for one in python_and_packages() if one.what == "plugin")
    assert found.severity is Severity.PROBLEM
    assert str(found.mend).startswith("unset PYTEST_DISABLE_PLUGIN_AUTOLOAD")


@pytest.mark.parametrize(
    ("api", "mend"),
    [
        ("class RKNN: pass", None),
        ("raise ImportError('libGL.so.1: cannot open shared object file')", "apt-get install libgl1"),
        ("import no_such_module", "pip install no_such_module"),
        ("raise ImportError('numpy.core.multiarray failed to import')", "pip install 'numpy<2'"),
        ("raise SystemError('odd')", "pip install --force-reinstall rknn-toolkit2"),
        ("import os; os.abort()", "pip install --force-reinstall rknn-toolkit2"),
    ],
)
def test_a_toolkit_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: str, mend: str | None
) -> None:
    (tmp_path / "rknn").mkdir()
    (tmp_path / "rknn" / "__init__.py").write_text("")
    (tmp_path / "rknn" / "api.py").write_text(api)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = toolkit(HERE)
    assert (found.severity, found.mend) == (Severity.PROBLEM if mend else Severity.OK, mend)
    assert "RKNN-Toolkit2 9.9.9" in found.says


@pytest.mark.skipif(
    find_spec("rknn") is None, reason="no RKNN-Toolkit2 here; pip install 'pytest-rknpu[toolkit]'"
)
def test_the_real_toolkit_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = toolkit(toolkit_status())
    assert found.severity is Severity.OK, found
    assert not list(tmp_path.iterdir()), "it leaves nothing here"


def test_a_toolkit_whose_import_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rknn").mkdir()
    (tmp_path / "rknn" / "api.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(module, "IMPORT_S", 0.5)
    found = toolkit(HERE)
    assert found.severity is Severity.PROBLEM
    assert "does not end within 0.5 s" in found.says


@pytest.mark.parametrize(
    ("python", "reason", "mend"),
    [
        ((3, 11), "it is not installed", "pip install 'pytest-rknpu[toolkit]'"),
        (
            (3, 14),
            "it has no build",
            "python3.12 -m venv .venv && .venv/bin/pip install 'pytest-rknpu[toolkit]'",
        ),
        ((3, 11), "it imports pkg_resources", "pip install 'setuptools<81'"),
    ],
)
def test_no_toolkit_is_a_note(
    monkeypatch: pytest.MonkeyPatch, python: tuple[int, int], reason: str, mend: str
) -> None:
    monkeypatch.setattr(module, "sys", SimpleNamespace(version_info=python, executable=sys.executable))
    found = toolkit(ToolkitStatus(None, reason))
    assert (found.severity, found.mend) == (Severity.NOTE, mend)


def test_folders_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path / "a" / "cache"))
    found = {one.what: one for one in folders(tmp_path)}
    assert list(found) == ["lease-folder", "cache-folder", "temporary-folder", "working-folder"]
    assert {one.severity for one in found.values()} <= {Severity.OK, Severity.NOTE}
    assert f"(to be made in {tmp_path})" in found["cache-folder"].says
    assert not (tmp_path / "a").exists()
    assert list((tmp_path / "leases").iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "what"), [("RKNPU_CACHE_DIR", "cache-folder"), ("RKNPU_LEASE_DIR", "lease-folder")]
)
def test_folders_that_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, what: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    (found,) = (one for one in folders(tmp_path) if one.what == what)
    assert found.severity is Severity.PROBLEM
    assert str(found.mend).startswith(f"export {variable}=DIR")


def test_a_working_folder_that_cannot_be_written_prevents_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (found,) = (one for one in folders(tmp_path / "file") if one.what == "working-folder")
    assert (found.severity, found.mend) == (Severity.NOTE, "cd DIR, one that you can write to")


@pytest.mark.parametrize(("free", "severity"), [(10, "problem"), (100, "note"), (5000, "ok")])
def test_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, severity: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free << 20))
    assert str(folder("cache-folder", tmp_path, "export X=DIR").severity) == severity
    assert str(folder("working-folder", tmp_path, "cd DIR").severity) == "ok"


@pytest.mark.skipif(shutil.which("mount") is None or sys.platform != "linux", reason="needs mount")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    command = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        (tmp_path / "rest").write_bytes(bytes(4096))
        found = folder("lease-folder", tmp_path, "export RKNPU_LEASE_DIR=DIR")
        assert found.severity is Severity.PROBLEM
        assert "No space left on device" in found.says
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid"])
def test_names_that_are_none(host: str) -> None:
    assert why_not_reached(host, 22, 5.0)

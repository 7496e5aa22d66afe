"""What a user without a clone gets: the wheel, installed into an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

CLONE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this clone, built without asking a registry."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    built = subprocess.run([*command, str(CLONE)], capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; dependencies are taken from the running one, this package is not."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], timeout=60, check=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python3*/site-packages")
    # Modules are found on a path that a .pth file names; .pth files there (of an editable install) are not.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
    subprocess.run([*command, "--quiet", "--no-compile", str(wheel)], timeout=120, check=True)
    return folder


def call(environment: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command outside the clone."""
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(environment / "bin" / "rknpu"), *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def tracked(folder: Path, names: Sequence[str] = ("*",)) -> set[Path]:
    """The files below a folder, without what Python itself caches."""
    found = (path for name in names for path in folder.rglob(name) if path.is_file())
    return {path.relative_to(folder) for path in found if "__pycache__" not in path.parts}


def test_the_wheel_carries_what_the_package_reads(wheel: Path) -> None:
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    package = CLONE / "pytest_rknpu"
    missing = {path for path in tracked(package) if Path("pytest_rknpu") / path not in names}
    assert missing == set()
    suites = {Path("pytest_rknpu/_suites") / path for path in tracked(CLONE / "suites")}
    assert suites
    assert suites <= names
    for name in ("py.typed", "_suites/boards.toml", "report/results.schema.json", "cli/pytest.ini"):
        assert Path("pytest_rknpu") / name in names
    assert not [name for name in names if name.parts[0] in ("tests", "suites", "docs", "benchmarks")]


def test_init_and_boards(installed: Path, tmp_path: Path) -> None:
    answer = call(installed, tmp_path, "boards", "--json")
    assert answer.returncode == 0, answer.stderr
    shipped = json.loads(answer.stdout)
    assert Path(shipped["file"]).is_relative_to(installed)  # neither the clone's nor an editable install's
    assert call(installed, tmp_path, "init", "lab").returncode == 0
    own = json.loads(call(installed, tmp_path, "boards", "--boards", "lab/boards.toml", "--json").stdout)
    assert own["boards"] == shipped["boards"]


def test_schema(installed: Path, tmp_path: Path) -> None:
    assert "properties" in call(installed, tmp_path, "schema").stdout


def test_run_collects_the_suites_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    before = tracked(installed)
    answer = call(installed, tmp_path, "run", "--collect-only", "-q", "--board", "emu-rk3588")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "emu-rk3588" in answer.stdout
    assert tracked(installed) == before


def test_run_shows_a_requirement_on_an_emulated_board(installed: Path, tmp_path: Path) -> None:
    before = tracked(installed)
    arguments = ["--board", "emu-rk3588", "-k", "to_device", "--rknpu-report", "report"]
    answer = call(installed, tmp_path, "run", *arguments)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    lines = (tmp_path / "report" / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines[1:]]
    assert {record["outcome"] for record in records} == {"pass"}
    assert {path.name for path in tmp_path.iterdir()} - {"leases"} == {".pytest_cache", "report"}
    assert tracked(installed) == before

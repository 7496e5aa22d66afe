"""What all tests share: pytest's own test tool, and leases that no other run on this host can hold."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fuzzing import examples
from hypothesis import settings

pytest_plugins = ["pytester"]

# A busy machine is no reason to fail a property.
settings.register_profile("unhurried", deadline=None, max_examples=examples(100))
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNPU_LEASE_DIR", str(tmp_path / "leases"))


@pytest.fixture(scope="session")
def fake_runtime(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of the compiled tests/agent/fake_runtime.c."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (gcc or cc) to build the fake runtime with")
    library = tmp_path_factory.mktemp("runtime") / "librknnrt.so"
    source = Path(__file__).parent / "agent" / "fake_runtime.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(source)],
        check=True,
    )
    return str(library)

"""The sysroot of an emulated board, and what importing the emulator costs the board's process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_rknpu.agent.probe import probe
from pytest_rknpu.emulator import make_root
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.socs import SOCS


@pytest.mark.parametrize("soc", SOCS)
def test_the_agent_finds_its_way(soc: str, tmp_path: Path) -> None:
    make_root(tmp_path, soc, {"runtime": "2.1.0", "driver": "0.9.3"})
    facts = probe(str(tmp_path), {"kind": "python"})
    assert SOCS[soc].matches_device_tree(facts["device_tree_compatible"]["value"])
    assert facts["driver_version"]["value"]["version"] == "emulated 0.9.3"
    assert facts["npu_device"]["value"]["driver"] == "RKNPU"
    assert "emulated" in facts["os_release"]["value"]["PRETTY_NAME"]
    assert "emulated" in facts["kernel"]["value"]["release"]
    assert facts["npu_load"]["value"] == [0] * SOCS[soc].npu_cores
    assert ("value" in facts["npu_clock"]) == (SOCS[soc].npu_devfreq is not None)


def test_every_text_of_a_root_is_marked(tmp_path: Path) -> None:
    """A file with a version in it says that it is emulated."""
    make_root(tmp_path, "rk3588", {"driver": "0.9.3"})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        text = path.read_text()
        if any(word in text for word in ("0.9.3", "2.3.2", "6.1.0")):
            assert "emulated" in text, path


def test_no_missing_node_by_number(tmp_path: Path) -> None:
    """The NPU is neither card0 nor renderD128, so that a fixed number finds the wrong device or none."""
    make_root(tmp_path, "rk3588")
    assert not (tmp_path / "dev/dri/renderD128").exists()
    assert "rknpu" not in (tmp_path / "sys/class/drm/card0/device/uevent").read_text().lower()


def test_what_make_root_refuses(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="rk3599"):
        make_root(tmp_path, "rk3599")
    with pytest.raises(ConfigurationError, match="unknown fault"):
        make_root(tmp_path, "rk3588", faults=["nothing"])
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        make_root(tmp_path / "file", "rk3588")


def test_a_boards_process_imports_little() -> None:
    """Neither pytest nor pydantic nor onnx; onnxruntime not before the first run."""
    code = (
        "import sys; from pytest_rknpu.emulator import FAULTS, open_library, make_root\n"
        "open_library({'soc': 'rk3588'})\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.split())
    assert "numpy" in loaded
    assert loaded.isdisjoint({"pytest", "pydantic", "onnx", "onnxruntime", "scipy", "execnet"})

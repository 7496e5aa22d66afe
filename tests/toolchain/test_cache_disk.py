"""A cache that takes no more: what is in it is still used, and the error says what to do."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConfigurationError, ToolkitError
from pytest_rknpu.toolchain import Compiled, CompileOptions, compile_model, disk, simulate, simulator

pytestmark = pytest.mark.usefixtures("toolkit")
MODEL = models.load("probe_pointwise")
FULL = r"the disk of the cache \S+ is full.*make room there, or set RKNPU_CACHE_DIR"
UNWRITABLE = r"cannot write the cache \S+ \(.*set RKNPU_CACHE_DIR to a folder that can be written"


def compiled(platform: str = "rk3588") -> Compiled:
    return compile_model(MODEL.float_onnx, CompileOptions(platform, MODEL.calibration))


def base_of(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "toolkit"


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", no_room)
        with pytest.raises(ConfigurationError, match=FULL):
            compiled()
    assert list((base_of(tmp_path) / "unfinished").iterdir()) == []
    assert not compiled().cached


def test_what_the_toolkit_makes_of_a_full_disk_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    with pytest.raises(ConfigurationError, match=r"is full, 0\.0 MiB free \(.*failed in build.*make room"):
        compiled("refuses")


def test_with_room_the_toolkits_error_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 30))
    with pytest.raises(ToolkitError, match="failed in build"):
        compiled("refuses")


def _locks_are_a_file(base: Path) -> None:
    shutil.rmtree(base / "locks")
    (base / "locks").write_text("")


def _lock_is_a_folder(base: Path) -> None:
    for lock in (base / "locks").iterdir():
        lock.unlink()
        lock.mkdir()


def _entry_is_a_file(base: Path) -> None:
    for entry in (base / "entries").iterdir():
        shutil.rmtree(entry)
        entry.write_text("")


@pytest.mark.parametrize("harm", [_locks_are_a_file, _lock_is_a_folder, _entry_is_a_file])
def test_an_unwritable_cache_says_what_to_set(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    compiled()
    harm(base_of(tmp_path))
    for index in base_of(tmp_path).glob("entries/*/entry.json"):
        index.write_text("damaged")
    with pytest.raises(ConfigurationError, match=UNWRITABLE):
        compiled()


def test_a_cache_that_cannot_even_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match=UNWRITABLE):
        compiled()


def test_what_is_there_is_used_without_writing(tmp_path: Path) -> None:
    assert not compiled().cached
    _locks_are_a_file(base_of(tmp_path))
    shutil.rmtree(base_of(tmp_path) / "unfinished")
    assert compiled().cached
    with pytest.raises(ConfigurationError, match=UNWRITABLE):
        compiled("rk3576")


def test_a_simulation_needs_no_room_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that is compiled there: what cannot be stored is simulated again another time."""
    compiled()
    options, inputs = CompileOptions("rk3588", MODEL.calibration), [MODEL.calibration[:1, None]]
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", no_room)
        assert simulator.simulation_of(MODEL.float_onnx, options, inputs).stored == ""
    monkeypatch.setattr(simulator, "_asked", set())
    assert simulator.simulation_of(MODEL.float_onnx, options, inputs).stored == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB, where this process may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"rknpu", bytes(folder), b"tmpfs", 0, b"size=2m") != 0:
        pytest.skip(f"may not mount a small file system here: {os.strerror(ctypes.get_errno())}")
    yield folder
    assert libc.umount2(bytes(folder), 2) == 0


@pytest.mark.parametrize("variable", ["RKNPU_CACHE_DIR", "TMPDIR"])
def test_a_disk_that_fills_up(small_disk: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """The model fits, what comes of it does not: this package's own writing, the toolkit's, and its log's."""
    samples = [MODEL.calibration[:1]]
    simulate(MODEL.float_onnx, CompileOptions("chatters-well", MODEL.calibration), samples)
    monkeypatch.setenv(variable, str(small_disk))
    monkeypatch.setattr("tempfile.tempdir", None)
    name = {"RKNPU_CACHE_DIR": "the cache", "TMPDIR": "the temporary folder"}[variable]
    with pytest.raises(ConfigurationError, match=rf"the disk of {name} .* is full.* or set {variable}"):
        simulate(MODEL.float_onnx, CompileOptions("chatters-well", MODEL.calibration), samples)
    # Nothing of what failed; the calibration samples may have found room.
    left = {path.name.partition("_")[0][:6] for path in small_disk.rglob("*.*") if path.suffix != ".lock"}
    assert left <= {"sample", "entry."}

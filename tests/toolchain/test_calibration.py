"""Calibration samples as files: written once for all builds that share them, checked by each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu.toolchain import calibration
from pytest_rknpu.toolchain.calibration import write_samples

RANDOM = np.random.default_rng(3)
ONE = (RANDOM.standard_normal((3, 2, 4, 4), dtype=np.float32),)
TWO = (ONE[0], RANDOM.standard_normal((3, 5)))  # float64, as a caller may have it


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    return folder


def read(folder: Path, lines: list[str]) -> list[list[np.ndarray]]:
    """As the toolkit: a line is split at spaces, a name is relative to its working directory."""
    return [[np.load(folder / name) for name in line.split()] for line in lines]


@pytest.mark.parametrize("arrays", [ONE, TWO], ids=["one input", "two"])
@pytest.mark.parametrize("largest", [0, 1 << 20], ids=["in the job", "kept"])
def test_each_sample_is_a_line_of_files(
    job: Path, monkeypatch: pytest.MonkeyPatch, arrays: tuple[np.ndarray, ...], largest: int
) -> None:
    monkeypatch.setattr(calibration, "_LARGEST_KEPT", largest)
    lines = write_samples(job, arrays)
    assert (job / "calibration").is_symlink() == (largest > 0)
    samples = read(job, lines)
    assert len(samples) == 3
    for number, sample in enumerate(samples):
        for loaded, array in zip(sample, arrays, strict=True):
            assert loaded.dtype == np.float32
            assert np.array_equal(loaded, array[number : number + 1].astype(np.float32))


def test_without_samples_there_is_no_line(job: Path, cache: Path) -> None:
    assert write_samples(job, ()) == []
    assert not cache.exists()


def test_equal_sets_are_written_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    save = np.save
    monkeypatch.setattr(np, "save", lambda path, array: written.append(path) or save(path, array))
    for number, arrays in enumerate((ONE, (ONE[0].copy(),), (ONE[0][:2],), TWO)):
        (tmp_path / str(number)).mkdir()
        write_samples(tmp_path / str(number), arrays)
    assert len(written) == 3 + 2 + 6
    assert len(list(cache.glob("toolkit/entries/*"))) == 3


def test_a_damaged_set_is_written_again(tmp_path: Path, cache: Path) -> None:
    for number in range(2):
        job = tmp_path / f"job{number}"
        job.mkdir()
        (samples,) = zip(*read(job, write_samples(job, ONE)), strict=True)
        assert np.array_equal(np.concatenate(samples), ONE[0])
        (file,) = cache.glob("toolkit/entries/*/sample1_0.npy")
        file.write_bytes(file.read_bytes()[:-1] + b"x")


def test_a_cache_that_takes_nothing_is_done_without(job: Path, cache: Path) -> None:
    cache.write_text("a file")
    assert len(read(job, write_samples(job, ONE))) == 3
    assert not (job / "calibration").exists()

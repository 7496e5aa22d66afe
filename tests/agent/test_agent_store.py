"""The model store: a model is there whole and verified, or it is not there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pytest_rknpu.agent import store as store_module
from pytest_rknpu.agent.failures import ProgramFailure, StorageFailure
from pytest_rknpu.agent.store import ModelStore

DATA = b"a model"
SHA = hashlib.sha256(DATA).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


def test_what_was_put_is_there(tmp_path: Path) -> None:
    store = ModelStore(str(tmp_path / "deep" / "models"))
    assert store.present([SHA]) == []
    store.put(SHA, DATA)
    store.put(SHA, DATA)
    store.put(OTHER, b"other")
    assert store.present([OTHER, "0" * 64, SHA]) == [OTHER, SHA]
    assert store.load(SHA) == DATA
    assert store.load(OTHER) == b"other"
    assert Path(store.path(SHA)).read_bytes() == DATA
    assert len(os.listdir(store.folder)) == 2


def test_bytes_with_another_hash_are_refused(tmp_path: Path) -> None:
    store = ModelStore(str(tmp_path))
    with pytest.raises(ProgramFailure, match="damaged on the way"):
        store.put(SHA, DATA + b"!")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"", DATA[:-1], b"a nodel"])
def test_a_damaged_file_counts_as_missing_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{SHA}.rknn").write_bytes(content)
    store = ModelStore(str(tmp_path))
    assert store.present([SHA]) == []
    with pytest.raises(ProgramFailure, match="not stored"):
        store.load(SHA)
    store.put(SHA, DATA)
    assert store.load(SHA) == DATA


def test_damage_after_it_was_verified_is_seen(tmp_path: Path) -> None:
    store = ModelStore(str(tmp_path))
    store.put(SHA, DATA)
    assert store.holds(SHA)
    Path(store.path(SHA)).write_bytes(DATA + b" and more")
    assert not store.holds(SHA)


def test_an_interrupted_copy_never_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pull_the_plug(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    store = ModelStore(str(tmp_path))
    monkeypatch.setattr(store_module.os, "fsync", pull_the_plug)
    with pytest.raises(StorageFailure, match="No space left"):
        store.put(SHA, DATA)
    monkeypatch.undo()
    assert store.present([SHA]) == []
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageFailure, match="another model_cache"):
        ModelStore(str(tmp_path / "file" / "models")).put(SHA, DATA)


def test_what_old_interrupted_copies_left_is_removed(tmp_path: Path) -> None:
    old, young, strange = tmp_path / ".partial-old", tmp_path / ".partial-young", tmp_path / "mine"
    for path in (old, young, strange):
        path.write_bytes(b"half a model")
    os.utime(old, (1, 1))
    os.utime(strange, (1, 1))
    ModelStore(str(tmp_path)).put(SHA, DATA)
    assert not old.exists()
    assert young.exists()
    assert strange.exists()

"""The model store: a model is there whole and verified, or it is not there."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent import store as store_module
from pytest_rknpu.agent.failures import ProgramFailure, StorageFailure
from pytest_rknpu.agent.store import DEFAULT_FOLDER, ModelStore, default_folders

DATA = b"a model"
SHA = hashlib.sha256(DATA).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


def files(folder: Path | str) -> list[str]:
    return sorted(os.listdir(folder))


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


@given(data=st.binary(max_size=40), cuts=st.sets(st.integers(0, 39)))
def test_a_model_comes_in_parts(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: set[int]
) -> None:
    store = ModelStore(str(tmp_path_factory.mktemp("models")))
    sha256 = hashlib.sha256(data).hexdigest()
    ends = [*sorted(cut for cut in cuts if 0 < cut < len(data)), len(data)]
    for start, end in zip([0, *ends], ends, strict=False):
        assert not store.holds(sha256)
        store.put(sha256, data[start:end], start, len(data))
    assert store.load(sha256) == data
    assert files(store.folder) == [f"{sha256}.rknn"]


@pytest.mark.parametrize(
    "parts",
    [
        [(SHA, DATA[3:], 3, 7)],
        [(SHA, DATA[:3], 0, 7), (SHA, DATA[4:], 4, 7)],
        [(SHA, DATA[:3], 0, 7), (SHA, DATA[:3], 2, 7)],
        [(SHA, DATA[:3], 0, 7), (OTHER, DATA[3:], 3, 7)],
        [(SHA, DATA[:3], 0, 7), (SHA, DATA[3:] + b"!", 3, 8)],
        [(SHA, DATA, 0, 6)],
        [(SHA, DATA[:3] + b"x", 0, 7), (SHA, DATA[4:], 4, 7)],
    ],
)
def test_parts_that_do_not_make_the_model_leave_nothing(tmp_path: Path, parts: list[tuple]) -> None:
    store = ModelStore(str(tmp_path))
    *before, last = parts
    for part in before:
        store.put(*part)
    with pytest.raises(ProgramFailure):
        store.put(*last)
    assert files(tmp_path) == []
    store.put(SHA, DATA)
    assert store.load(SHA) == DATA


def test_a_model_that_is_begun_anew(tmp_path: Path) -> None:
    store = ModelStore(str(tmp_path))
    store.put(SHA, DATA[:3], 0, 7)
    store.put(OTHER, b"oth", 0, 5)
    assert len(files(tmp_path)) == 1
    store.put(OTHER, b"er", 3, 5)
    assert files(tmp_path) == [f"{OTHER}.rknn"]
    store.put(SHA, DATA[:3], 0, 7)
    store.abandon()
    assert files(tmp_path) == [f"{OTHER}.rknn"]


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


def test_a_file_system_that_cannot_set_room_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_here(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(store_module.os, "posix_fallocate", not_here)
    store = ModelStore(str(tmp_path))
    store.put(SHA, DATA)
    assert store.load(SHA) == DATA


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageFailure, match=r"set model_cache in boards\.toml"):
        ModelStore(str(tmp_path / "file" / "models")).put(SHA, DATA)


def test_what_interrupted_copies_left_is_removed(tmp_path: Path) -> None:
    left, strange, locked = tmp_path / ".partial-left", tmp_path / "mine", tmp_path / ".partial-locked"
    for path in (left, strange, locked):
        path.write_bytes(b"half a model")
    with locked.open("rb") as at_work:
        fcntl.flock(at_work, fcntl.LOCK_EX)
        ModelStore(str(tmp_path)).put(SHA, DATA)
    assert not left.exists()
    assert strange.exists()
    assert locked.exists()


KILLED = """
import os, signal, sys
from pytest_rknpu.agent.store import ModelStore
ModelStore(sys.argv[1]).put(sys.argv[2], b"a mo", 0, 7)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_agent_leaves_no_model_and_its_part_is_removed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), SHA], check=False)
    (left,) = files(tmp_path)
    assert left.startswith(".partial-")
    store = ModelStore(str(tmp_path))
    assert store.present([SHA]) == []
    store.put(OTHER, b"other")
    assert files(tmp_path) == [f"{OTHER}.rknn"]


class TestDefaultFolders:
    @pytest.fixture(autouse=True)
    def _folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.android, self.temporary = tmp_path / "home", tmp_path / "android", tmp_path / "tmp"
        for folder in (self.home, self.temporary):
            folder.mkdir()
        self.temporary.chmod(0o1777)
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setattr(store_module, "ANDROID_FOLDER", str(self.android))
        monkeypatch.setattr(store_module.tempfile, "tempdir", str(self.temporary))

    def test_home_is_first(self) -> None:
        store = ModelStore(DEFAULT_FOLDER)
        store.put(SHA, DATA)
        assert store.path(SHA) == f"{self.home}/.cache/pytest-rknpu/models/{SHA}.rknn"
        assert ModelStore(store.folder).holds(SHA)
        assert not files(self.temporary)

    @pytest.mark.parametrize("android", [True, False])
    def test_without_a_usable_home(self, android: bool) -> None:
        self.home.rmdir()
        self.home.write_text("no folder")
        if android:
            self.android.mkdir()
        store = ModelStore(DEFAULT_FOLDER)
        store.put(SHA, DATA)
        folder = self.android if android else self.temporary
        assert store.path(SHA).startswith(str(folder))
        assert ModelStore(store.folder).load(SHA) == DATA

    def test_what_is_in_a_later_folder_is_found_although_an_earlier_one_works_again(self) -> None:
        folder = Path(default_folders()[-1])
        folder.mkdir(parents=True)
        (folder / f"{SHA}.rknn").write_bytes(DATA)
        assert ModelStore(DEFAULT_FOLDER).load(SHA) == DATA

    def test_no_home_at_all(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Then ~ stays ~, which must not become a folder of that name."""
        monkeypatch.setattr(store_module.os.path, "expanduser", lambda path: path)
        monkeypatch.chdir(tmp_path)
        ModelStore(DEFAULT_FOLDER).put(SHA, DATA)
        assert not (tmp_path / "~").exists()
        assert len(files(self.temporary)) == 1

    @pytest.mark.parametrize("trap", ["symlink", "owner"])
    def test_a_folder_that_another_user_prepared_is_refused(
        self, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.home.rmdir()
        self.home.write_text("no folder")
        folder = Path(default_folders()[-1])
        if trap == "symlink":
            (tmp_path / "elsewhere").mkdir()
            folder.symlink_to(tmp_path / "elsewhere")
        else:
            folder.mkdir()
            monkeypatch.setattr(store_module.os, "geteuid", lambda: os.getuid() + 1)
            folder.rename(default_folders()[-1])
        with pytest.raises(StorageFailure, match="it is another user's"):
            ModelStore(DEFAULT_FOLDER).put(SHA, DATA)
        assert not files(folder if trap == "symlink" else default_folders()[-1])

    def test_no_folder_for_temporary_files_either(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none() -> str:
            raise FileNotFoundError(2, "No usable temporary directory found")

        monkeypatch.setattr(store_module.tempfile, "gettempdir", none)
        self.home.rmdir()
        self.home.write_text("no folder")
        with pytest.raises(StorageFailure, match=r"home/\.cache.*make room, or set model_cache"):
            ModelStore(DEFAULT_FOLDER).put(SHA, DATA)

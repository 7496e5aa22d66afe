"""The shipped .rknn files: whole, for whom they say, of today's models, small; and rebuilt by one command."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from pytest_rknpu import models, prebuilt
from pytest_rknpu.errors import ConfigurationError, ModelError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.prebuilt import predicted, rebuild, store
from pytest_rknpu.session import artifacts
from pytest_rknpu.session.artifacts import artifact_for, compiler_of
from pytest_rknpu.toolchain import CompileOptions, ToolkitStatus, read_header

ENTRIES = json.loads((store.FOLDER / store.MANIFEST).read_text())["entries"]
MOST_BYTES = 3_000_000


@pytest.mark.parametrize("key", sorted(ENTRIES))
def test_each_file_is_what_it_says(key: str) -> None:
    version, platform, name = key.split("/")
    found = prebuilt.load(name, platform, version)
    header = read_header(found.content)
    assert header.target_platforms == (platform,)
    assert header.toolkit_version.startswith(version)
    assert header.format_version == ENTRIES[key]["format_version"]
    model = models.load(name)
    assert found.onnx_sha256 == hashlib.sha256(model.float_onnx).hexdigest()
    assert found.calibration_sha256 == hashlib.sha256(model.calibration.tobytes()).hexdigest()
    assert found.options == CompileOptions(platform, model.calibration).config_keywords()


def test_nothing_is_missing_or_left_over() -> None:
    wanted = {
        store.key_of(name, platform, version)
        for version in rebuild.STORED_VERSIONS
        for name, platform in rebuild.wanted(version)
    }
    files = {path.relative_to(store.FOLDER / "files") for path in store.FOLDER.glob("files/*/*/*.rknn")}
    assert wanted == set(ENTRIES) == {str(path.with_suffix("")) for path in files}
    newest = {soc.toolkit_platform for soc in SOCS.values()}
    assert {p for _, p in rebuild.wanted(store.NEWEST)} == newest
    assert sum(entry["bytes"] for entry in ENTRIES.values()) < MOST_BYTES


def test_the_baselines_are_of_todays_models() -> None:
    """Where this fails, a model was made anew: rebuild with each toolkit version of BASELINE_VERSIONS."""
    for soc in SOCS.values():
        for name in models.names():
            for installed, expected in (("2.5.0", "2.3.2"), ("2.3.2", "2.5.0"), ("2.6.0", "2.5.0")):
                found = prebuilt.baseline_for(name, soc.toolkit_platform, installed)
                assert found.toolkit_version == expected
                assert found.onnx_sha256 == hashlib.sha256(models.load(name).float_onnx).hexdigest(), name
                assert found.layers


def test_what_there_is_not() -> None:
    assert prebuilt.versions_of("probe_pointwise", "rv1126b") == ("2.3.2", "2.5.0")
    assert prebuilt.versions_of("probe_pointwise", "rk3588") == ("2.2.0", "2.3.0", "2.3.2", "2.5.0")
    with pytest.raises(ModelError, match=r"by RKNN-Toolkit2 2\.2\.0 for rv1126b; versions: 2\.3\.2, 2\.5\.0"):
        prebuilt.load("probe_pointwise", "rv1126b", "2.2.0")
    with pytest.raises(ModelError, match="versions: none"):
        prebuilt.load("nonsense", "rk3588")
    with pytest.raises(ModelError, match="no predicted cycles"):
        prebuilt.baseline_for("nonsense", "rk3588", "2.5.0")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with the manifest and the files of one platform."""
    shutil.copy(store.FOLDER / store.MANIFEST, tmp_path)
    shutil.copytree(store.FOLDER / "files/2.5.0/rv1106", tmp_path / "files/2.5.0/rv1106")
    return tmp_path


def test_a_damaged_or_missing_file_is_refused(copy: Path) -> None:
    assert prebuilt.load("probe_chain", "rv1106", folder=copy).content
    path = store.path_of("probe_chain", "rv1106", "2.5.0", copy)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"not the file of the manifest .*rebuild it"):
        prebuilt.load("probe_chain", "rv1106", folder=copy)
    path.unlink()
    with pytest.raises(ModelError, match="cannot read the prebuilt"):
        prebuilt.load("probe_chain", "rv1106", folder=copy)


@pytest.mark.parametrize("content", [None, "", "[]", "{}"])
def test_a_damaged_list_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / store.MANIFEST).write_text(content)
        (tmp_path / predicted.BASELINES).write_text(content)
    with pytest.raises(ModelError, match=r"the list of prebuilt models .*reinstall|rebuild"):
        prebuilt.load("probe_chain", "rv1106", folder=tmp_path)
    with pytest.raises(ModelError, match="reinstall"):
        prebuilt.baseline_for("probe_chain", "rv1106", "2.5.0", folder=tmp_path)


def test_one_command_rebuilds_what_changed(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the stand-in for the toolkit; the real one made what is shipped."""
    monkeypatch.setattr(rebuild, "STORED_VERSIONS", ("9.9.9",))
    monkeypatch.setattr(rebuild, "STORED_MODEL", "probe_stride")
    folder = tmp_path / "prebuilt"
    folder.mkdir()
    written = rebuild.rebuild(folder)
    assert written == sorted(f"9.9.9/{soc.toolkit_platform}/probe_stride" for soc in SOCS.values())
    assert prebuilt.load("probe_stride", "rk3562", "9.9.9", folder).toolkit_version == "9.9.9"
    assert rebuild.rebuild(folder) == []
    entries = json.loads((folder / store.MANIFEST).read_text())
    entries["entries"]["9.9.9/rk3562/probe_stride"]["onnx_sha256"] = "of an older model"
    (folder / store.MANIFEST).write_text(json.dumps(entries))
    assert rebuild.rebuild(folder) == ["9.9.9/rk3562/probe_stride"]
    assert len(rebuild.rebuild(folder, force=True)) == len(SOCS)


def test_another_toolkit_version_is_refused(toolkit: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"2\.5\.0, not of 9\.9\.9"):
        rebuild.rebuild(tmp_path)


def test_boards_without_a_toolkit_get_the_prebuilt_models(monkeypatch: pytest.MonkeyPatch) -> None:
    status = ToolkitStatus(None, "RKNN-Toolkit2 is not installed")
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: status)
    artifacts.compiled.cache_clear()
    board = Board(name="lab", soc="rk3576", host="192.0.2.7")
    try:
        assert artifact_for(board, "probe_wide") == prebuilt.load("probe_wide", "rk3576").content
        other = artifact_for(board, "probe_chain", soc="rv1106")
        assert read_header(other).target_platforms == ("rv1106",)
        versions = compiler_of(board)
        assert versions["toolkit"] == "absent (RKNN-Toolkit2 is not installed)"
        assert versions["model_compiler"].startswith("2.5.0 (")
    finally:
        artifacts.compiled.cache_clear()

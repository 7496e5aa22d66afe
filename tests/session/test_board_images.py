"""Fake boards of every SoC and flavour of BSP, by the whole way from their files to words and remedies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_rknpu.agent.probe import probe
from pytest_rknpu.cli.probe import probed_json, probed_text
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.session.missing import Missing, missing_on
from pytest_rknpu.session.probing import Probed
from pytest_rknpu.session.versions import is_value, known_from_facts
from tests.board_images import IMAGES, Image

ALL_FILES = {path: content for image in IMAGES.values() for path, content in image.files.items()}


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest) -> Image:
    """Each of the images."""
    return IMAGES[request.param]


def look(image: Image, root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The facts of the probe, for the user that the image has."""
    really = {"open": os.open, "listdir": os.listdir}

    def guard(name: str) -> Any:
        def guarded(path: Any, *arguments: Any, **keys: Any) -> Any:
            if any(f"/{part}" in str(path) for part in image.shut):
                raise PermissionError(13, "Permission denied", path)
            return really[name](path, *arguments, **keys)

        return guarded

    folder = image.lay(root)
    for name in really:
        monkeypatch.setattr(os, name, guard(name))
    return probe(folder, {"kind": "shared-object", "path": image.library_name})


def test_every_soc_has_an_image() -> None:
    """The B parts differ from theirs in no file that a probe reads."""
    assert {image.soc for image in IMAGES.values()} == set(SOCS) - {"rv1103b", "rv1106b"}


def test_versions(image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = known_from_facts(look(image, tmp_path, monkeypatch))
    assert versions["bsp"] == image.bsp
    assert versions["kernel"] == image.kernel
    assert versions["driver"].startswith(image.driver)
    assert versions["runtime_library"].startswith(image.library)
    assert all(text and "None" not in text for text in versions.values()), versions


def test_the_npu_is_found_by_its_driver(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = look(image, tmp_path, monkeypatch)["npu_device"]
    assert tuple(device.get("value", {}).get("nodes", ())) == image.nodes


def test_what_is_missing(image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = missing_on(SOCS[image.soc], look(image, tmp_path, monkeypatch))
    assert {problem.what for problem in found} == set(image.missing)
    assert tuple(problem.what for problem in found if problem.needed) == image.needed
    assert all(problem.why and problem.remedy for problem in found)


def test_no_blocked_fact_is_a_fault_of_the_probe(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = look(image, tmp_path, monkeypatch)
    assert not [fact for fact in facts.values() if "the probe failed" in str(fact.get("blocked"))]


def why(name: str, what: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> Missing:
    found = missing_on(SOCS[IMAGES[name].soc], look(IMAGES[name], root, monkeypatch))
    return next(problem for problem in found if problem.what == what)


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("armbian-rk3576", "npu-access", "Permission denied"),
        ("container-rk3588", "npu-access", "--device /dev/dri/renderD129"),
        ("container-rk3588", "device-tree", "the NPU's driver says rockchip,rk3588-rknpu"),
        ("container-rk3588", "debugfs", "debugfs is mounted, but there is no /sys/kernel/debug/rknpu"),
        ("mainline-rk3588", "npu-driver", "driven by rocket, another stack"),
        ("debian-rk3566", "runtime-library", "invalid ELF header: this is a Git LFS pointer"),
        (
            "armhf-user-space-rk3562",
            "runtime-library",
            "built for 64-bit aarch64, but this Python is 32-bit arm; install the runtime for this "
            "architecture (the SDK's rknpu2/runtime/Linux/librknn_api/armhf",
        ),
        ("buildroot-rv1103", "runtime-library", "librknnmrt.so is in none of the usual library folders"),
        ("buildroot-rv1103", "debugfs", "there is no /sys/kernel/debug"),
        ("wrong-board", "soc", "boards.toml says rk3576, the device tree rockchip,rk3588-orangepi-5-plus"),
        ("orangepi-ubuntu-rk3588s", "one-runtime-library", "aarch64-linux-gnu/librknnrt.so"),
        ("orangepi-ubuntu-rk3588s", "kernel-log", "kernel.dmesg_restrict=0"),
    ],
)
def test_the_reason_is_named(
    name: str, what: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words in why(name, what, tmp_path, monkeypatch).why


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("armbian-rk3576", "npu-access", "join the group that owns the node"),
        ("mainline-rk3588", "npu-driver", "boot the vendor's kernel"),
        ("buildroot-rv1103", "runtime-library", "copy librknnmrt.so from the SDK's"),
        ("wrong-board", "soc", "correct `soc`"),
        ("radxa-debian-rk3588", "pinned-clocks", "only root can set clocks"),
    ],
)
def test_the_remedy_is_named(
    name: str, what: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = look(IMAGES[name], tmp_path, monkeypatch)
    facts["user"] = {"value": {"uid": 1000, "name": "rock", "groups": []}}
    found = missing_on(SOCS[IMAGES[name].soc], facts, pins_clocks=True)
    assert words in next(problem.remedy for problem in found if problem.what == what)


def test_lite2_of_the_system_python_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = look(IMAGES["radxa-debian-rk3588"], tmp_path, monkeypatch)
    assert facts["lite_version"] == {"value": "1.5.2"}


def test_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("android-rk3568", "1.6.0"), ("luckfox-buildroot-rv1106", "1.3.0")):
        found = look(IMAGES[name], tmp_path / name, monkeypatch)["rknn_server"]["value"]
        assert (found["version"], found["pid"]) == (version, None)


def test_facts_that_nobody_asked_for_are_not_missing() -> None:
    assert missing_on(SOCS["rk3588"], {}) == ()
    assert not is_value(known_from_facts({})["driver"])


CONTENTS = st.binary(max_size=60) | st.sampled_from(
    [
        *(value if isinstance(value, bytes) else value.encode() for value in ALL_FILES.values()),
        b"NPU load:  Core0: 999999999%",
        b"9" * 5000,
        b"NAME=\n",
        b"librknnrt version: 1",
        b"\xff\xfe\x00\x1b[2J",
    ]
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(st.sampled_from(sorted(ALL_FILES)), CONTENTS, max_size=12))
def test_whatever_the_files_hold_everything_has_words(
    files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("board")
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    facts = probe(str(root), {"kind": "shared-object", "path": "librknnrt.so"})
    assert not [fact for fact in facts.values() if "the probe failed" in str(fact.get("blocked"))]
    versions = known_from_facts(facts)
    board = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local", pin=True)
    missing = missing_on(board.chip, facts, pins_clocks=True)
    probed = Probed(board, versions, facts, missing=missing)
    assert "\x1b" not in probed_text(probed, 100)
    json.loads(probed_json(probed).encode("utf-8"))

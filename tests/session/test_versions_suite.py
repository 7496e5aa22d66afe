"""The VER suites on boards that no emulator plays: barred, busy, foreign, complaining."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_rknpu.agent.probe import probe
from pytest_rknpu.errors import BoardError, ConformanceFailure, Inconclusive
from pytest_rknpu.farm.run import Effort
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.session import Npu
from pytest_rknpu.verdict import ItemRecord
from tests.board_images import IMAGES
from tests.suite_modules import suite

IDENTITY = suite("versions/test_identity.py")
HEALTH = suite("versions/test_health.py")


def looked_at(name: str, root: Path) -> Any:
    """An NPU of the board that an image makes, as far as VER-02 and VER-04 look at it."""
    image = IMAGES[name]
    facts = probe(image.lay(root), {"kind": "shared-object", "path": image.library_name})
    board = SimpleNamespace(name="desk", runtime="librknnrt")
    session = SimpleNamespace(board=board, facts=facts)
    return SimpleNamespace(session=session, soc=SOCS[image.soc], record=ItemRecord("test", (), 1))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, image in IMAGES.items()
        if "device-tree" not in image.missing and "soc" not in image.missing
    ],
)
def test_the_right_soc_is_recognised(name: str, tmp_path: Path) -> None:
    IDENTITY.test_the_board_is_the_soc_of_boards_toml(looked_at(name, tmp_path))


def test_the_wrong_soc_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConformanceFailure, match=r"is rk3576 in boards\.toml, .*rockchip,rk3588; correct `soc`"
    ):
        IDENTITY.test_the_board_is_the_soc_of_boards_toml(looked_at("wrong-board", tmp_path))


def test_a_masked_device_tree_is_inconclusive_and_the_driver_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(Inconclusive, match=r"container masks it.*driver says rockchip,rk3588-rknpu"):
        IDENTITY.test_the_board_is_the_soc_of_boards_toml(looked_at("container-rk3588", tmp_path))


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("radxa-debian-rk3588", "/dev/dri/renderD129"),
        ("orangepi-ubuntu-rk3588s", "/dev/dri/renderD128"),
        ("luckfox-buildroot-rv1106", "/dev/rknpu"),
    ],
)
def test_the_node_is_found_whatever_its_number(name: str, node: str, tmp_path: Path) -> None:
    npu = looked_at(name, tmp_path)
    IDENTITY.test_the_npu_device_is_usable(npu)
    assert any(node in note for note in npu.record.notes)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mainline-rk3588", "another stack.*boot the vendor's kernel"),
        ("container-rk3588", "--device /dev/dri/renderD129.*join the group"),
    ],
)
def test_an_npu_that_cannot_be_used_is_named_with_the_remedy(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConformanceFailure, match=f"board desk: the NPU cannot be used: .*{words}"):
        IDENTITY.test_the_npu_device_is_usable(looked_at(name, tmp_path))


def test_where_nobody_may_look_nothing_is_said(tmp_path: Path) -> None:
    npu = looked_at("radxa-debian-rk3588", tmp_path)
    npu.session.facts["npu_device"] = {"blocked": "/sys/class/drm: Permission denied"}
    with pytest.raises(Inconclusive, match="nobody may look"):
        IDENTITY.test_the_npu_device_is_usable(npu)


def test_a_node_that_is_refused_beside_a_usable_one_is_noted(tmp_path: Path) -> None:
    npu = looked_at("radxa-debian-rk3588", tmp_path)
    npu.session.facts["npu_access"]["value"]["refused"] = ["/dev/dri/card1: Permission denied"]
    IDENTITY.test_the_npu_device_is_usable(npu)
    assert "not for this user: /dev/dri/card1: Permission denied" in npu.record.notes


Changes = Mapping[str, Any]


def answering(npu: Npu, monkeypatch: pytest.MonkeyPatch, *changes: Changes) -> None:
    """Let probes answer with these changes to what they see, one after the other; the last one stays."""
    really, waiting = npu.session.probe, iter(changes)
    last: list[Changes] = [{}]

    def looked() -> Mapping[str, Any]:
        last[0] = next(waiting, last[0])
        return {**really(), **last[0]}

    monkeypatch.setattr(npu.session, "probe", looked)
    monkeypatch.setattr(HEALTH, "PERIOD_S", 0.01)
    monkeypatch.setattr(HEALTH, "SETTLING_S", 0.2)


def load(*percent: int) -> Changes:
    return {"npu_load": {"value": list(percent)}}


def kernel(*texts: str, first: int = 1) -> Changes:
    entries = [
        {"sequence": first + at, "seconds": 1.0, "level": 6, "text": text} for at, text in enumerate(texts)
    ]
    return {"npu_kernel_log": {"value": entries}}


def health(npu: Npu) -> None:
    HEALTH.test_runs_leave_no_error(npu, Effort.QUICK)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How often the suite slept."""
    slept: list[float] = []
    monkeypatch.setattr(HEALTH, "time", SimpleNamespace(monotonic=time.monotonic, sleep=slept.append))
    return slept


def test_the_load_of_the_test_before_may_fade(
    npu: Npu, monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    answering(npu, monkeypatch, load(40, 0, 0), load(3, 0, 0), load(0, 0, 0))
    health(npu)
    assert len(waited) == 2


def test_a_program_that_uses_the_npu_is_named(npu: Npu, monkeypatch: pytest.MonkeyPatch) -> None:
    users = {"npu_users": {"value": [{"pid": 812, "name": "frigate"}]}}
    answering(npu, monkeypatch, {**load(40, 0, 0), **users})
    with pytest.raises(
        BoardError, match=r"in use before the test \(load \[40, 0, 0\] %; open in frigate \(812\)\)"
    ):
        health(npu)


@pytest.mark.parametrize(
    "text", ["RKNPU: soft reset, num: 6", "RKNPU: job timeout, flags: 0x0", "Disabling IRQ #42"]
)
def test_what_the_kernel_complains_of_meanwhile_fails(
    npu: Npu, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    answering(npu, monkeypatch, kernel("started", text), kernel("started", text, text))
    with pytest.raises(ConformanceFailure, match=f"the kernel reports\n{text}$"):
        health(npu)


def test_what_it_complained_of_before_does_not(npu: Npu, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(npu, monkeypatch, kernel("RKNPU: soft reset, num: 6"))
    health(npu)


@pytest.mark.parametrize("name", ["npu_load", "npu_kernel_log"])
@pytest.mark.parametrize("kind", ["blocked", "absent"])
def test_what_cannot_be_seen_is_inconclusive(
    npu: Npu, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    answering(npu, monkeypatch, {name: {kind: "/dev/kmsg: Operation not permitted"}})
    with pytest.raises(Inconclusive, match="Operation not permitted"):
        health(npu)


def test_what_the_kernel_complains_of_fails_any_test(npu: Npu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told with what a test leaves behind: no test has to look for itself."""
    said = [
        {"sequence": 7, "seconds": 1.0, "level": 6, "text": "RKNPU: soft reset, num: 6"},
        {"sequence": 8, "seconds": 1.0, "level": 6, "text": "fdab0000.npu: bin=0"},
    ]
    really = npu.session.reset
    monkeypatch.setattr(npu.session, "reset", lambda: {**really(), "kernel_log": said})
    assert npu.finish().error_lines == ["kernel: RKNPU: soft reset, num: 6"]


def test_a_quiet_kernel_fails_nothing(npu: Npu) -> None:
    assert npu.finish().error_lines == []

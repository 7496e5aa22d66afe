"""The kernel's log: every form in which boards show it, and which of its messages are about the NPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent import kernel_log, readers
from pytest_rknpu.agent.probe import probe
from pytest_rknpu.agent.readers import MAXIMUM_TEXT, Absent, Blocked, Root

SOFTWARE = {"kind": "python"}
STARTS = [
    (
        "[drm] Initialized rknpu 0.9.8 20240828 for fdab0000.npu on minor 1",
        {"version": "0.9.8", "date": "20240828", "device": "fdab0000.npu"},
    ),
    (
        "[drm] Initialized rknpu 0.9.8 for fdab0000.npu on minor 1",
        {"version": "0.9.8", "date": None, "device": "fdab0000.npu"},
    ),
    ("[drm] Initialized rknpu 0.9.6", {"version": "0.9.6", "date": None, "device": None}),
    (
        "RKNPU ff660000.npu: Initialized RKNPU driver: v0.8.2",
        {"version": "0.8.2", "date": None, "device": "ff660000.npu"},
    ),
    (
        "rknpu fdab0000.npu: Initialized RKNPU driver: v0.9.8 for 20240828",
        {"version": "0.9.8", "date": "20240828", "device": "fdab0000.npu"},
    ),
]


@pytest.mark.parametrize(("text", "expected"), STARTS)
@pytest.mark.parametrize(
    "shown",
    [
        "6,339,5140900,-;{}\n SUBSYSTEM=drm\n DEVICE=+drm:card1\n",
        "6,339,5140900,-,caller=T1;{}\n",
        "[    5.140900] {}\n",
        "[    5.140900][    T1] {}\n",
        "<6>[    5.140900] {}\r\n",
        "<6>{}\n",
        "{}",
    ],
)
def test_the_driver_tells_its_version_at_its_start(shown: str, text: str, expected: dict[str, Any]) -> None:
    (record,) = kernel_log.parse_kernel_log(shown.format(text))
    assert record["text"] == text
    assert record["seconds"] in (5.1409, None)
    assert record["level"] in (6, None)
    assert kernel_log.driver_in([record]) == expected


def record(text: str) -> dict[str, Any]:
    (found,) = kernel_log.parse_kernel_log(text)
    return found


def test_the_last_start_counts() -> None:
    records = [record(text) for text, _ in reversed(STARTS)]
    found = kernel_log.driver_in([*records, record("quiet")])
    assert found is not None
    assert found["date"] == "20240828"
    assert kernel_log.driver_in([record("quiet")]) is None


@pytest.mark.parametrize(
    "text",
    [
        "RKNPU fdab0000.npu: rknpu iommu is disabled, using non-iommu mode",
        "fdab0000.npu: bin=0",
        "platform npu@fde40000: late",
        "Disabling IRQ #42",
        'irq 42: nobody cared (try booting with the "irqpoll" option)',
        "RKNPU: soft reset, num: 6",
        "RKNPU: failed to wait job, task counter: 0, flags: 0x5",
    ],
)
def test_what_is_about_the_npu(text: str) -> None:
    assert kernel_log.about_the_npu([record(text)]) == [record(text)]


@pytest.mark.parametrize("text", ["usb 1-1: new", "rk_iommu fdab9000.iommu: Page fault at 0x0", "npupu"])
def test_what_is_not(text: str) -> None:
    assert kernel_log.about_the_npu([record(text)]) == []


def test_a_page_fault_of_the_npus_own_iommu_is(tmp_path: Path) -> None:
    fault = "rk_iommu fdab9000.iommu: Page fault at 0x0 of type read"
    write(tmp_path, "dev/kmsg", f"3,7,1,-;{fault}\n3,8,2,-;rk_iommu fe043e00.iommu: Page fault\n")
    device = tmp_path / "sys/class/drm/renderD129/device"
    write(tmp_path, "sys/class/drm/renderD129/device/uevent", "DRIVER=RKNPU\n")
    (device / "iommu").symlink_to("../../fdab9000.iommu/iommu/fdab9000.iommu")
    facts = probe(str(tmp_path), SOFTWARE)
    assert facts["npu_device"]["value"]["iommu"] == "fdab9000.iommu"
    assert [entry["text"] for entry in facts["npu_kernel_log"]["value"]] == [fault]


@pytest.mark.parametrize("mode", ["enabled", "disabled"])
def test_the_iommu_mode(mode: str) -> None:
    assert kernel_log.iommu_in([record(f"RKNPU fdab0000.npu: RKNPU: rknpu iommu is {mode}, using x")]) == mode
    assert kernel_log.iommu_in([record("quiet")]) is None


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_a_copy_of_the_start_tells_of_the_driver_and_of_nothing_new(tmp_path: Path) -> None:
    """Else a test that looks for new complaints would look at a file that never changes."""
    write(tmp_path, "var/log/dmesg", f"[    5.1] {STARTS[0][0]}\n[    5.2] rknpu iommu is enabled\n")
    facts = probe(str(tmp_path), SOFTWARE)
    assert facts["driver_version"]["value"]["version"] == "0.9.8"
    assert facts["npu_iommu"]["value"] == "enabled"
    assert "there is no /dev/kmsg" in facts["npu_kernel_log"]["absent"]


def test_a_log_that_is_barred_is_not_replaced_by_an_old_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "dev/kmsg", "")
    write(tmp_path, "var/log/dmesg", f"[    5.1] {STARTS[0][0]}\n")
    really = os.open

    def guarded(path: Any, *arguments: Any, **keys: Any) -> int:
        if "kmsg" in str(path):
            raise PermissionError(1, "Operation not permitted", path)
        return really(path, *arguments, **keys)

    monkeypatch.setattr(os, "open", guarded)
    facts = probe(str(tmp_path), SOFTWARE)
    assert "kernel.dmesg_restrict=0" in facts["npu_kernel_log"]["blocked"]
    assert facts["driver_version"]["value"]["version"] == "0.9.8"


def test_the_newest_messages_are_kept_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "MAXIMUM_TEXT", MAXIMUM_TEXT // 16)
    noise = "6,1,1,-;" + "x" * 1000 + "\n"
    write(
        tmp_path, "dev/kmsg", noise * (MAXIMUM_TEXT // 16_000 + 100) + "6,9,9,-;RKNPU: soft reset, num: 6\n"
    )
    facts = probe(str(tmp_path), SOFTWARE)
    assert [entry["sequence"] for entry in facts["npu_kernel_log"]["value"]] == [9]


def test_without_kmsg_the_system_call_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container; what this host answers to it is its own affair."""
    root = Root("/")
    monkeypatch.setattr(root, "read_tail", missing)
    monkeypatch.setattr(kernel_log, "_by_system_call", lambda: "<3>[    1.5] RKNPU: job timeout\n")
    (found,) = kernel_log.read_live(root)
    assert found == {"sequence": None, "seconds": 1.5, "level": 3, "text": "RKNPU: job timeout"}


def missing(path: str) -> str:
    raise Absent(f"there is no /{path}")


def test_the_system_call_answers_or_says_why_not() -> None:
    answer: str
    try:
        answer = kernel_log._by_system_call()
    except Blocked as error:
        answer = str(error)
        assert "dmesg_restrict" in answer
    assert isinstance(answer, str)


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("<>[],;. 0123456789\n"), max_size=200))
def test_no_text_makes_it_raise(text: str) -> None:
    records = kernel_log.parse_kernel_log(text)
    kernel_log.about_the_npu(records, "iommu")
    kernel_log.driver_in(records)
    kernel_log.iommu_in(records)
    assert all(isinstance(entry["text"], str) for entry in records)


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1,",
        "<1>",
        "[ ",
        "[    1.1",
        "[drm] Initialized rknpu ",
        "Initialized rknpu 0",
        "RKNPU x: Initialized RKNPU driver: v0",
        "rknpu ",
        " \n",
    ],
)
@pytest.mark.timeout(120)
def test_a_long_log_is_read_to_its_end(piece: str) -> None:
    """A pattern that tries again from everywhere would take hours for it."""
    records = kernel_log.parse_kernel_log(piece * (400_000 // len(piece)))
    kernel_log.driver_in(records)
    kernel_log.iommu_in(records)
    kernel_log.about_the_npu(records)


def test_a_watch_tells_what_is_said_from_now_on(tmp_path: Path) -> None:
    write(tmp_path, "dev/kmsg", "6,1,1,-;RKNPU: old\n")
    watch = kernel_log.Watch(Root(str(tmp_path)), "fdab9000.iommu")
    assert watch.take() == []
    with (tmp_path / "dev/kmsg").open("a") as log:
        log.write(
            "6,2,2,-;RKNPU: soft reset, num: 6\n6,3,3,-;usb 1-1\n3,4,4,-;rk_iommu fdab9000.iommu: fault\n"
        )
    assert [entry["sequence"] for entry in watch.take()] == [2, 4]
    assert watch.take() == []
    watch.close()
    watch.close()
    assert watch.take() == []


def test_a_watch_of_a_log_that_is_barred_tells_nothing(tmp_path: Path) -> None:
    assert kernel_log.Watch(Root(str(tmp_path))).take() == []


def test_a_flood_is_cut_to_its_end(tmp_path: Path) -> None:
    write(tmp_path, "dev/kmsg", "")
    watch = kernel_log.Watch(Root(str(tmp_path)))
    with (tmp_path / "dev/kmsg").open("a") as log:
        log.writelines(f"6,{number},1,-;RKNPU: soft reset\n" for number in range(1000))
    assert [entry["sequence"] for entry in watch.take()] == list(range(800, 1000))
    watch.close()

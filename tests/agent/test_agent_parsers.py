"""Parsers on the strings that people who run these boards report, and on anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent import parsers
from pytest_rknpu.agent.resources import parse_bufinfo


@pytest.mark.parametrize(
    ("text", "version", "commit", "date"),
    [
        ("RKNPU driver: v0.9.6", "0.9.6", None, None),
        ("0.9.6", "0.9.6", None, None),
        ("1.6.0 (9a7b5d24c@2023-12-13T17:31:11)", "1.6.0", "9a7b5d24c", "2023-12-13T17:31:11"),
        ("2.1.0 (967d001cc8@2024-08-07T19:28:19)", "2.1.0", "967d001cc8", "2024-08-07T19:28:19"),
        (
            "librknnrt version: 1.5.2 (c6b7b351a@2023-08-23T15:28:22)",
            "1.5.2",
            "c6b7b351a",
            "2023-08-23T15:28:22",
        ),
        ("1.5.3b13", "1.5.3b13", None, None),
        ("2.0.0b0", "2.0.0b0", None, None),
        ("2.3.3b3", "2.3.3b3", None, None),
        ("2.3.2", "2.3.2", None, None),
        ("1.6.0+81f21f4d", "1.6.0", "81f21f4d", None),
        ("2.0.0b22+de81ff8b", "2.0.0b22", "de81ff8b", None),
        ("1.4.0-22dcfef4", "1.4.0", "22dcfef4", None),
        ("2.3.2 (1842325 build@2025-03-30T09:54:34)", "2.3.2", "1842325", "2025-03-30T09:54:34"),
        ("1.3.0 (121b661 build: 2022-04-29 11:12:02)", "1.3.0", "121b661", "2022-04-29 11:12:02"),
        ("emulated 2.3.2", "emulated 2.3.2", None, None),
        ("RKNPU driver: emulated 0.9.8", "emulated 0.9.8", None, None),
        ("no version here", None, None, None),
        ("", None, None, None),
    ],
)
def test_versions(text: str, version: str | None, commit: str | None, date: str | None) -> None:
    assert parsers.parse_version(text) == {"version": version, "commit": commit, "date": date}


@pytest.mark.parametrize(
    ("data", "version", "commit"),
    [
        (b"\0\x01librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)\0more", "2.3.2", "429f97ae6b"),
        (b"x librknnmrt version: 1.6.0 (9a7b5d24c@2023-12-13T17:31:11)\n", "1.6.0", "9a7b5d24c"),
        (b"librknnrt version: 2.0.0b0\0", "2.0.0b0", None),
    ],
)
def test_a_runtime_library_tells_its_version(data: bytes, version: str, commit: str | None) -> None:
    found = parsers.library_version(data)
    assert found is not None
    assert (found["version"], found["commit"]) == (version, commit)


def test_a_library_without_the_string_has_no_version() -> None:
    assert parsers.library_version(b"\x7fELF nothing of interest") is None


def test_a_server_tells_its_version() -> None:
    found = parsers.server_version(b"..rknn_server version: 2.3.2 (1842325 build@2025-03-30T09:54:34)\0")
    assert found is not None
    assert (found["version"], found["date"]) == ("2.3.2", "2025-03-30T09:54:34")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[drm] Initialized rknpu 0.9.8 20240828 for fdab0000.npu on minor 1",
            {"version": "0.9.8", "date": "20240828", "device": "fdab0000.npu"},
        ),
        (
            "RKNPU ff660000.npu: Initialized RKNPU driver: v0.8.2",
            {"version": "0.8.2", "date": None, "device": "ff660000.npu"},
        ),
    ],
)
def test_the_kernel_log_tells_the_driver(line: str, expected: dict[str, Any]) -> None:
    record = f"6,339,5140900,-;{line}\n SUBSYSTEM=drm\n6,340,5140901,-;something else\n"
    lines = parsers.parse_kernel_log(record)
    assert lines == [line, "something else"]
    assert parsers.driver_in_kernel_log(lines) == expected


def test_the_last_driver_start_counts() -> None:
    lines = [
        "[drm] Initialized rknpu 0.9.3 20230101 for a.npu on minor 1",
        "RKNPU a.npu: Initialized RKNPU driver: v0.9.8",
    ]
    found = parsers.driver_in_kernel_log(lines)
    assert found is not None
    assert found["version"] == "0.9.8"
    assert parsers.driver_in_kernel_log(["quiet"]) is None


def test_the_kernel_log_tells_of_iommu_and_lost_interrupts() -> None:
    lines = [
        "RKNPU fdab0000.npu: rknpu iommu is disabled, using non-iommu mode",
        "usb 1-1: new",
        "Disabling IRQ #42",
    ]
    assert parsers.iommu_in_kernel_log(lines) == "disabled"
    assert parsers.iommu_in_kernel_log(["quiet"]) is None
    assert parsers.npu_lines(lines) == [lines[0], lines[2]]


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("NPU load:  Core0: 63%, Core1: 65%, Core2: 64%,", [63, 65, 64]),
        ("NPU load:  0%", [0]),
        ("NPU load:  Core0:  0%, Core1:  0%,\n", [0, 0]),
        ("", None),
        ("nonsense", None),
    ],
)
def test_npu_load(text: str, load: list[int] | None) -> None:
    assert parsers.parse_npu_load(text) == load


@pytest.mark.parametrize(
    ("data", "entries"),
    [
        (
            b"rockchip,rk3588-orangepi-5-plus\0rockchip,rk3588\0",
            ["rockchip,rk3588-orangepi-5-plus", "rockchip,rk3588"],
        ),
        (
            b"rockchip,rv1103g-38x38-ipc-v10\0rockchip,rv1103",
            ["rockchip,rv1103g-38x38-ipc-v10", "rockchip,rv1103"],
        ),
        (b"", []),
    ],
)
def test_device_tree_strings(data: bytes, entries: list[str]) -> None:
    assert parsers.parse_strings(data) == entries


def test_os_release_is_read_like_a_shell_reads_it() -> None:
    text = '# comment\nNAME="Armbian \\"unofficial\\""\nID=\'debian\'\nVERSION_ID=12\nbad line\nEMPTY=\n'
    assert parsers.parse_os_release(text) == {
        "NAME": 'Armbian "unofficial"',
        "ID": "debian",
        "VERSION_ID": "12",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("uevent", "is_npu"),
    [
        ("DRIVER=RKNPU\nOF_NAME=npu", True),
        ("DRIVER=rknpu", True),
        ("DRIVER=other\nOF_COMPATIBLE_0=rockchip,rk3588-rknpu", True),
        ("DRIVER=rockchip-drm\nOF_COMPATIBLE_0=rockchip,display-subsystem", False),
        ("DRIVER=panfrost", False),
        ("OF_ALIAS_0=x-rknpu", False),
        ("", False),
    ],
)
def test_the_npu_is_known_by_its_driver(uevent: str, is_npu: bool) -> None:
    assert parsers.is_rknpu(parsers.parse_uevent(uevent)) is is_npu


def test_frequencies() -> None:
    assert parsers.parse_integers("300000000 1000000000 x -5 ²") == [300000000, 1000000000]


def test_bufinfo() -> None:
    text = "Dma-buf Objects:\nsize\tflags\n00001000\t...\n\nTotal 3 objects, 12345 bytes\n"
    assert parse_bufinfo(text) == 12345
    assert parse_bufinfo("") is None


@given(st.text() | st.from_regex(r"[v.0-9 ()@:a-f+\-]{0,40}"))
def test_no_text_makes_a_parser_raise(text: str) -> None:
    for parse in (
        parsers.parse_version,
        parsers.parse_os_release,
        parsers.parse_npu_load,
        parsers.parse_uevent,
        parsers.parse_integers,
        parse_bufinfo,
    ):
        parse(text)
    lines = parsers.parse_kernel_log(text)
    parsers.driver_in_kernel_log(lines)
    parsers.iommu_in_kernel_log(lines)


@given(st.binary())
def test_no_bytes_make_a_parser_raise(data: bytes) -> None:
    assert all("\0" not in entry for entry in parsers.parse_strings(data))
    parsers.library_version(data)
    parsers.library_version(b"librknnrt version: " + data)

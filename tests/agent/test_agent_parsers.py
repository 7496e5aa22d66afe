"""Parsers on the strings that people who run these boards report, and on anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent import parsers
from pytest_rknpu.agent.identity import hide_secrets
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
        ("fake 1.0", "1.0", None, None),
        ("6.1.43-20-rk2312", "6.1.43", None, None),
        ("5.10.110-50-rockchip-g5db04e2aa688", "5.10.110", None, None),
        ("6.1.115-vendor-rk35xx", "6.1.115", None, None),
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


def test_the_format_of_a_version_is_no_version() -> None:
    """Beside what it is, a library holds what it prints it with."""
    data = b"librknnrt version: %s\0librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)\0"
    found = parsers.library_version(data)
    assert found is not None
    assert found["version"] == "2.3.2"
    assert parsers.server_version(b"start rknn server, version:%s\0") is None


@pytest.mark.parametrize(
    ("data", "version", "date"),
    [
        (
            b"..rknn_server version: 2.3.2 (1842325 build@2025-03-30T09:54:34)\0",
            "2.3.2",
            "2025-03-30T09:54:34",
        ),
        (b"rknn_server version: 1.3.0 (121b661 build: 2022-04-29 11:12:02)", "1.3.0", "2022-04-29 11:12:02"),
        (
            b"start rknn server, version:1.6.0 (535b468 build@2023-12-11T17:05:07)\n",
            "1.6.0",
            "2023-12-11T17:05:07",
        ),
    ],
)
def test_a_server_tells_its_version(data: bytes, version: str, date: str) -> None:
    found = parsers.server_version(data)
    assert found is not None
    assert (found["version"], found["date"]) == (version, date)


def test_android_tells_what_it_is() -> None:
    text = (
        "# begin build properties\nro.build.version.release=12\nro.build.display.id=rk3588_s-userdebug 12\n"
        "ro.product.model=rk3588_s\nro.debuggable=1\nnonsense\nro.board.platform=\n"
    )
    assert parsers.parse_build_properties(text) == {
        "ro.build.version.release": "12",
        "ro.build.display.id": "rk3588_s-userdebug 12",
        "ro.product.model": "rk3588_s",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("root=UUID=1 isolcpus=4-7", "root=UUID=1 isolcpus=4-7"),
        ("androidboot.serialno=c3d9b8674f4b94f6 quiet", "androidboot.serialno=(hidden) quiet"),
        ("wifi_psk=hunter2", "wifi_psk=(hidden)"),
        ('luks.key="a b c" rw', "luks.key=(hidden) rw"),
        ("ip=dhcp PASSWORD=x;y z=1", "ip=dhcp PASSWORD=(hidden);y z=1"),
        ('{"password": "hunter2", "board": "x"}', '{"password": (hidden), "board": "x"}'),
        ("keyboard monkey=1 console=ttyFIQ0", "keyboard monkey=1 console=ttyFIQ0"),
        ("api_token: abc", "api_token: (hidden)"),
        ("options: password=hunter2", "options: password=(hidden)"),
        ("token=key=abc", "token=(hidden)"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown


@given(st.text(max_size=60))
def test_no_text_makes_hiding_raise(text: str) -> None:
    hide_secrets(text)
    assert "hunter2" not in hide_secrets(f"{text} password=hunter2")


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
        ("DRIVER=rocket\nOF_COMPATIBLE_0=rockchip,rk3588-rknpu", False),
        ("", False),
    ],
)
def test_the_npu_is_known_by_its_driver(uevent: str, is_npu: bool) -> None:
    assert parsers.is_rknpu(parsers.parse_uevent(uevent)) is is_npu


def test_frequencies() -> None:
    assert parsers.parse_integers("300000000 1000000000 x -5 ²") == [300000000, 1000000000]
    assert parsers.parse_integers("9" * 5000) == []  # Python refuses to read such a number


def test_bufinfo() -> None:
    text = "Dma-buf Objects:\nsize\tflags\n00001000\t...\n\nTotal 3 objects, 12345 bytes\n"
    assert parse_bufinfo(text) == 12345
    assert parse_bufinfo("") is None


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1.",
        "v1.",
        "a",
        "1.1",
        "1.1.1 (",
        "1.1 (abcdef@",
        "emulated ",
        "Core0:",
        "NPU load: ",
        "ro.a",
        "=",
    ],
)
def test_long_texts_are_read_to_their_end(piece: str) -> None:
    """A pattern that tries again from everywhere would take hours for them."""
    text = piece * (400_000 // len(piece))
    for parse in (
        parsers.parse_version,
        parsers.parse_os_release,
        parsers.parse_build_properties,
        parsers.parse_npu_load,
        parsers.parse_uevent,
        parsers.parse_integers,
        hide_secrets,
    ):
        parse(text)
    for prefix in (b"librknnrt version: ", b"rknn_server version: ", b"librknn"):
        parsers.library_version(prefix * 20_000 + text.encode())
        parsers.server_version(prefix * 20_000 + text.encode())


@given(st.text() | st.from_regex(r"[v.0-9 ()@:a-f+\-]{0,40}"))
def test_no_text_makes_a_parser_raise(text: str) -> None:
    for parse in (
        parsers.parse_version,
        parsers.parse_os_release,
        parsers.parse_build_properties,
        parsers.parse_npu_load,
        parsers.parse_uevent,
        parsers.parse_integers,
        parse_bufinfo,
    ):
        parse(text)
    parsers.is_rknpu(parsers.parse_uevent(text))


@given(st.binary())
def test_no_bytes_make_a_parser_raise(data: bytes) -> None:
    assert all("\0" not in entry for entry in parsers.parse_strings(data))
    parsers.library_version(data)
    parsers.library_version(b"librknnrt version: 1" + data)
    parsers.server_version(b"rknn_server version: 1" + data)

"""What the files of a board say, as pure functions from text to plain data.

The strings are those that people who run such boards report. Each function takes any text, never raises, and
needs no more than time proportional to its length: every repetition in a pattern is bounded, or cannot begin
again where it failed.
"""

from __future__ import annotations

import re
from typing import Any

_VERSION = re.compile(
    r"(?P<emulated>emulated )?\bv?(?P<version>\d{1,9}\.\d{1,9}(?:\.\d{1,9}){0,4}(?:(?:a|b|rc)\d{1,6})?)"
    r"(?:[+-](?P<local>[0-9a-f]{6,40})\b)?"
    r"(?: ?\((?P<commit>[0-9a-f]{6,40})\b(?: build)?(?:@|: ?)(?P<date>[^()]{0,40})\))?"
)
_RUNTIME = re.compile(rb"librknn(?:m?rt|_api) version: ?\d[^\0\n]{1,120}")
_SERVER = re.compile(rb"(?:rknn_server version: ?|start rknn server, version: ?)\d[^\0\n]{1,120}")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROPERTY = re.compile(r"(ro\.[a-z0-9._]{1,80})=(.*)")
_PROPERTIES = (
    "ro.build.version.release",
    "ro.build.display.id",
    "ro.build.fingerprint",
    "ro.product.model",
    "ro.board.platform",
    "ro.product.board",
)
_MOST_LOADS = 64

OTHER_DRIVERS = ("rocket",)
"""Drivers for the same NPU that librknnrt cannot use."""


def parse_strings(data: bytes) -> list[str]:
    """The NUL-terminated strings of a device-tree property, empty ones left out."""
    return [part.decode("utf-8", "replace") for part in data.split(b"\0") if part]


def parse_os_release(text: str) -> dict[str, str]:
    """Keys and values of an os-release file (shell assignments); lines that are none are left out."""
    values = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if not equals or not _ASSIGNMENT.fullmatch(key):
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        values[key] = re.sub(r"\\([\\\"'$`])", r"\1", value)
    return values


def parse_build_properties(text: str) -> dict[str, str]:
    """The properties of an Android ``build.prop`` that say what was built and for which board."""
    found = (_PROPERTY.fullmatch(line.strip()) for line in text.splitlines())
    values = {match[1]: match[2].strip() for match in found if match is not None}
    return {name: values[name] for name in _PROPERTIES if values.get(name)}


def parse_version(text: str) -> dict[str, str | None]:
    """``version``, ``commit`` and ``date`` of the first version in a text; None for what is not there.

    Knows the forms of runtime, API, driver, toolkit and rknn_server: "2.3.2
    (429f97ae6b@2025-04-09T09:09:27)", "v0.9.6", "1.6.0+81f21f4d", "2.0.0b22+de81ff8b", "1.4.0-22dcfef4",
    "2.3.2 (1842325 build@2025-03-30T09:54:34)". An emulated board's "emulated 2.3.2" keeps that word.
    """
    found = _VERSION.search(text)
    if found is None:
        return {"version": None, "commit": None, "date": None}
    version = (found["emulated"] or "") + found["version"]
    return {"version": version, "commit": found["commit"] or found["local"], "date": found["date"]}


def parse_npu_load(text: str) -> list[int] | None:
    """Percent per core from ``NPU load:  Core0: 63%, Core1: 65%,`` or ``NPU load:  0%``; else None."""
    found = re.findall(r"(?:Core\d{1,3}:|NPU load:)\s{0,8}(\d{1,3})%", text[:4096])
    return [int(entry) for entry in found[:_MOST_LOADS]] or None


def parse_uevent(text: str) -> dict[str, str]:
    """Keys and values of a sysfs uevent file."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, equals, value in pairs if equals}


def is_rknpu(uevent: dict[str, str]) -> bool:
    """Whether a DRM device is driven by the vendor's NPU driver, by driver name or device-tree compatible.

    Mainline's driver is another stack, whatever the device tree calls the hardware.
    """
    driver = uevent.get("DRIVER", "").lower()
    if driver in ("rknpu", *OTHER_DRIVERS):
        return driver == "rknpu"
    return any(
        value.endswith("-rknpu")
        for key, value in uevent.items()
        if re.fullmatch(r"OF_COMPATIBLE_\d{1,4}", key)
    )


def parse_integers(text: str) -> list[int]:
    """The non-negative integers of a text between white space, such as ``available_frequencies``."""
    return [int(word) for word in text.split() if len(word) <= 19 and word.isascii() and word.isdigit()]


def library_version(data: bytes) -> dict[str, str | None] | None:
    """The version string that a runtime library carries, with its parts; None where there is none."""
    return _embedded(_RUNTIME, data)


def server_version(data: bytes) -> dict[str, str | None] | None:
    """The version string that the rknn_server program carries or logs, with its parts; None without one."""
    return _embedded(_SERVER, data)


def _embedded(pattern: Any, data: bytes) -> dict[str, str | None] | None:
    found = pattern.search(data)
    if found is None:
        return None
    text = found[0].decode("utf-8", "replace").strip()
    return {"text": text, **parse_version(text.partition("version:")[2])}

"""What the files of a board say, as pure functions from text to plain data.

The strings are those that people who run such boards report; each function takes any text and never raises.
"""

from __future__ import annotations

import re
from typing import Any

_VERSION = re.compile(
    r"(?P<emulated>emulated )?\bv?(?P<version>\d+\.\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?)"
    r"(?:[+-](?P<local>[0-9a-f]{6,40}))?"
    r"(?: ?\((?P<commit>[0-9a-f]{6,40})\b(?: build)?(?:@|: ?)(?P<date>[^)]*)\))?"
)
_KERNEL_DRIVER = (
    re.compile(r"\[drm\] Initialized rknpu (?P<version>\S+)(?: (?P<date>\d{8}))? for (?P<device>\S+)"),
    re.compile(r"RKNPU (?P<device>\S+): Initialized RKNPU driver: (?P<version>\S+)"),
)
_RUNTIME = re.compile(rb"librknn(?:m?rt|_api) version: [^\0\n]{1,120}")
_SERVER = re.compile(rb"rknn_server version: [^\0\n]{1,120}")
_KMSG = re.compile(r"^\d+,\d+,\d+,[^;]*;")
_NPU_LINE = re.compile(r"rknpu|\.npu\b|npu@|Disabling IRQ", re.IGNORECASE)


def parse_strings(data: bytes) -> list[str]:
    """The NUL-terminated strings of a device-tree property, empty ones left out."""
    return [part.decode("utf-8", "replace") for part in data.split(b"\0") if part]


def parse_os_release(text: str) -> dict[str, str]:
    """Keys and values of an os-release file (shell assignments); lines that are none are left out."""
    values = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        values[key] = re.sub(r"\\([\\\"'$`])", r"\1", value)
    return values


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


def parse_kernel_log(text: str) -> list[str]:
    """The messages of a kernel log, freed of /dev/kmsg's record heads and of continuation lines."""
    lines = (line for line in text.splitlines() if line and not line.startswith(" "))
    return [_KMSG.sub("", line, count=1) for line in lines]


def npu_lines(lines: list[str]) -> list[str]:
    """Those messages that are about the NPU or an interrupt that the kernel gave up."""
    return [line for line in lines if _NPU_LINE.search(line)]


def driver_in_kernel_log(lines: list[str]) -> dict[str, str | None] | None:
    """``version``, ``date`` and ``device`` of the last driver start in a kernel log, if it shows one."""
    for line in reversed(lines):
        for pattern in _KERNEL_DRIVER:
            found = pattern.search(line)
            if found is not None:
                groups = found.groupdict()
                version = parse_version(groups["version"])["version"] or groups["version"]
                return {"version": version, "date": groups.get("date"), "device": groups["device"]}
    return None


def iommu_in_kernel_log(lines: list[str]) -> str | None:
    """``"disabled"`` or ``"enabled"`` as the driver said at its start; None where it said nothing."""
    for line in reversed(lines):
        found = re.search(r"rknpu iommu is (enabled|disabled)", line)
        if found is not None:
            return found[1]
    return None


def parse_npu_load(text: str) -> list[int] | None:
    """Percent per core from ``NPU load:  Core0: 63%, Core1: 65%,`` or ``NPU load:  0%``; else None."""
    found = re.findall(r"(?:Core\d+:|NPU load:)\s*(\d+)%", text)
    return [int(entry) for entry in found] or None


def parse_uevent(text: str) -> dict[str, str]:
    """Keys and values of a sysfs uevent file."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, equals, value in pairs if equals}


def is_rknpu(uevent: dict[str, str]) -> bool:
    """Whether a DRM device is driven by the vendor's NPU driver, by driver name or device-tree compatible."""
    compatible = (value for key, value in uevent.items() if re.fullmatch(r"OF_COMPATIBLE_\d+", key))
    return uevent.get("DRIVER", "").lower() == "rknpu" or any(
        value.endswith("-rknpu") for value in compatible
    )


def parse_integers(text: str) -> list[int]:
    """The non-negative integers of a text between white space, such as ``available_frequencies``."""
    return [int(word) for word in text.split() if word.isascii() and word.isdigit()]


def library_version(data: bytes) -> dict[str, str | None] | None:
    """The version string that a runtime library carries, with its parts; None where there is none."""
    return _embedded(_RUNTIME, data)


def server_version(data: bytes) -> dict[str, str | None] | None:
    """The version string that the rknn_server program carries, with its parts; None where there is none."""
    return _embedded(_SERVER, data)


def _embedded(pattern: Any, data: bytes) -> dict[str, str | None] | None:
    found = pattern.search(data)
    if found is None:
        return None
    text = found[0].decode("utf-8", "replace").strip()
    return {"text": text, **parse_version(text.partition("version:")[2])}

"""What a kernel says about its NPU: reading its log, and pure functions from its text to plain data.

A record is ``{"sequence", "seconds", "level", "text"}``: the kernel's own number of the message (None outside
/dev/kmsg), seconds since the board started, level (0 emergency to 3 error, 4 warning, 6 information); None
where the text does not say.
"""

from __future__ import annotations

import ctypes
import os
import re
from typing import Any, Dict

from .parsers import parse_version
from .readers import MAXIMUM_TEXT, Absent, Blocked, Root, blocks

LIVE = "dev/kmsg"
KEPT = ("var/log/dmesg", "var/log/dmesg.0")
"""What some images save of the start of the board; it never grows afterwards."""

Record = Dict[str, Any]
MOST_TOLD = 200
"""Messages that are told at once, the last ones."""
_LEVELS = 8
_READ_ALL = 3  # SYSLOG_ACTION_READ_ALL of klogctl(3)
_SIZE = 10  # SYSLOG_ACTION_SIZE_BUFFER
_KMSG = re.compile(r"(\d{1,10}),(\d{1,20}),(\d{1,20}),[^;]{0,200};(.*)", re.DOTALL)
_DMESG = re.compile(r"(?:<(\d{1,4})>)?\[ {0,16}(\d{1,12}\.\d{1,9})\](?:\[[^\]]{0,24}\])? ?(.*)", re.DOTALL)
_BARE_LEVEL = re.compile(r"<(\d{1,4})>(.*)", re.DOTALL)
_DRIVER = (
    re.compile(
        r"\bInitialized rknpu (?P<version>v?\d[^\s,]{0,40})"
        r"(?: (?P<date>\d{8})\b)?(?: for (?P<device>\S{1,80}))?"
    ),
    re.compile(
        r"\brknpu (?P<device>\S{1,80}): Initialized RKNPU driver: (?P<version>v?\d[^\s,]{0,40})"
        r"(?: for (?P<date>\d{8})\b)?",
        re.IGNORECASE,
    ),
)
_IOMMU = re.compile(r"rknpu iommu is (enabled|disabled)", re.IGNORECASE)
_NPU = re.compile(r"rknpu|\.npu\b|npu@|Disabling IRQ|irq \d{1,6}: nobody cared", re.IGNORECASE)


def read_live(root: Root) -> list[Record]:
    """The kernel's log as it stands, which grows with every message.

    Raises ``Blocked`` or ``Absent``; a copy of the start of the board is no substitute.
    """
    try:
        return parse_kernel_log(root.read_tail(LIVE))
    except Absent:
        if not root.is_live:
            raise
    return parse_kernel_log(_by_system_call())


class Watch:
    """What the kernel says about the NPU from now on; nothing where its log may not be read."""

    def __init__(self, root: Root, iommu: str | None = None) -> None:
        self._iommu = iommu
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(root.path(LIVE), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            self.close()

    def take(self) -> list[Record]:
        """The messages since the last call."""
        if self._descriptor is None:
            return []
        try:
            text = b"".join(blocks(self._descriptor, MAXIMUM_TEXT)).decode("utf-8", "replace")
        except OSError:
            self.close()
            return []
        return about_the_npu(parse_kernel_log(text), self._iommu)[-MOST_TOLD:]

    def close(self) -> None:
        """Look no more; safe to call twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def read_start(root: Root) -> list[Record]:
    """What the kernel said since the board started, from its log or else from a copy that the image kept."""
    try:
        return read_live(root)
    except (Absent, Blocked) as first:
        for path in KEPT:
            text = root.optional(path)
            if text is not None:
                return parse_kernel_log(text)
        raise first


def _by_system_call() -> str:
    """As dmesg reads it in containers that have no /dev/kmsg."""
    try:
        call: Any = ctypes.CDLL(None, use_errno=True).klogctl
    except (OSError, AttributeError):
        raise Absent("there is no /dev/kmsg, and this C library has no klogctl") from None
    size = max(call(_SIZE, None, 0), 2**16)
    buffer = ctypes.create_string_buffer(size)
    length = call(_READ_ALL, buffer, size)
    if length < 0:
        reason = os.strerror(ctypes.get_errno())
        raise Blocked(
            f"there is no /dev/kmsg, and the kernel refuses klogctl: {reason}; run as root, set the sysctl "
            "kernel.dmesg_restrict=0, or give a container --device /dev/kmsg and --cap-add SYSLOG"
        )
    return buffer.raw[:length].decode("utf-8", "replace")


def parse_kernel_log(text: str) -> list[Record]:
    """The messages of /dev/kmsg, dmesg or a saved log, without continuation lines (`` SUBSYSTEM=drm``)."""
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return [_record(line) for line in lines if line.strip() and not line.startswith(" ")]


def _record(line: str) -> Record:
    found = _KMSG.fullmatch(line)
    if found is not None:
        priority, sequence, microseconds, message = found.groups()
        return {
            "sequence": int(sequence),
            "seconds": int(microseconds) / 1e6,
            "level": int(priority) % _LEVELS,
            "text": message,
        }
    found = _DMESG.fullmatch(line)
    if found is not None:
        priority, seconds, message = found.groups()
        level = None if priority is None else int(priority) % _LEVELS
        return {"sequence": None, "seconds": float(seconds), "level": level, "text": message}
    found = _BARE_LEVEL.fullmatch(line)
    if found is not None:
        return {"sequence": None, "seconds": None, "level": int(found[1]) % _LEVELS, "text": found[2]}
    return {"sequence": None, "seconds": None, "level": None, "text": line}


def about_the_npu(records: list[Record], iommu: str | None = None) -> list[Record]:
    """Those records that are about the NPU, its IOMMU of that name, or an interrupt that was given up."""
    return [
        record
        for record in records
        if _NPU.search(record["text"]) or (iommu is not None and iommu in record["text"])
    ]


def driver_in(records: list[Record]) -> dict[str, str | None] | None:
    """``version``, ``date`` and ``device`` of the last start of the driver that the log shows, if any."""
    for record in reversed(records):
        for pattern in _DRIVER:
            found = pattern.search(record["text"])
            if found is not None:
                version = parse_version(found["version"])["version"] or found["version"]
                return {"version": version, "date": found["date"], "device": found["device"]}
    return None


def iommu_in(records: list[Record]) -> str | None:
    """``"disabled"`` or ``"enabled"`` as the driver said at its start; None where it said nothing."""
    for record in reversed(records):
        found = _IOMMU.search(record["text"])
        if found is not None:
            return found[1].lower()
    return None

"""What an image says of itself: device tree, release files, kernel, and who the agent is there."""

from __future__ import annotations

import os
import re
from typing import Any

from .parsers import parse_build_properties, parse_os_release, parse_strings
from .readers import Absent, Blocked, Root

DEVICE_TREE = ("proc/device-tree", "sys/firmware/devicetree/base")
VENDOR_FILES = ("*-release", "*_release", "*_version", "radxa_image_fingerprint", "version", "rk_version")
NOT_VENDOR_FILES = ("os-release", "lsb-release", "debian_version", "system-release")
BUILD_PROPERTIES = ("system/build.prop", "vendor/build.prop", "system/system/build.prop", "default.prop")
HIDDEN = "(hidden)"
_LONGEST_RELEASE = 4096
_KEY = re.compile(r"(?<![\w.-])([\w.-]{1,120})\"?\s{0,2}[=:]\s{0,2}")
_VALUE = re.compile(r"\"[^\"]{0,4096}\"|[^\s\",;]{1,4096}")
# Keys of secrets, and of numbers by which one device can be told from all others.
_SECRET = re.compile(
    r"pass|secret|token|psk|cred|auth|serial|mac_?addr|ethaddr|imei|(?<![a-z])key", re.IGNORECASE
)


def _device_tree(root: Root, name: str) -> bytes:
    blocked = None
    for folder in DEVICE_TREE:
        try:
            return root.read_bytes(f"{folder}/{name}")
        except Absent:
            continue
        except Blocked as error:
            blocked = error
    if blocked is not None:
        raise blocked
    raise Absent(
        f"there is no /proc/device-tree/{name}: no device tree, or a container masks it (give the container "
        f"-v /proc/device-tree/{name}:/proc/device-tree/{name})"
    )


def device_tree_compatible(root: Root) -> list[str]:
    """All entries of the root node's ``compatible``, most specific first."""
    return parse_strings(_device_tree(root, "compatible"))


def device_tree_model(root: Root) -> str:
    """The root node's ``model``."""
    return " ".join(parse_strings(_device_tree(root, "model")))


def os_release(root: Root) -> dict[str, str]:
    """The assignments of os-release."""
    return parse_os_release(root.read_first("etc/os-release", "usr/lib/os-release"))


def android(root: Root) -> dict[str, str]:
    """What Android's build properties say of the image; the first file that gives a property counts."""
    found: dict[str, str] = {}
    blocked = None
    for path in BUILD_PROPERTIES:
        try:
            found = {**parse_build_properties(root.read(path)), **found}
        except Absent:
            continue
        except Blocked as error:
            blocked = error
    if found:
        return found
    if blocked is not None:
        raise blocked
    raise Absent("there is no build.prop: this is no Android")


def vendor_release(root: Root) -> dict[str, str]:
    """Contents (the first 4,096 characters) of the files in which images name themselves."""
    names = [name for name in root.names("etc", *VENDOR_FILES) if name not in NOT_VENDOR_FILES]
    texts = {name: root.optional(f"etc/{name}") for name in names}
    found = {name: hide_secrets(text[:_LONGEST_RELEASE]) for name, text in texts.items() if text}
    if not found:
        raise Absent(f"/etc has no vendor release file ({', '.join(VENDOR_FILES)})")
    return found


def kernel(root: Root) -> dict[str, str | None]:
    """Release and banner of the running kernel."""
    release = root.optional("proc/sys/kernel/osrelease")
    banner = root.optional("proc/version")
    if release is None and root.is_live:
        release = os.uname().release
    if release is None and banner is None:
        raise Absent("there is neither /proc/sys/kernel/osrelease nor /proc/version")
    return {"release": release, "banner": banner}


def command_line(root: Root) -> str:
    """The kernel's command line; boot loaders put serial numbers, keys and passwords there."""
    return hide_secrets(root.read("proc/cmdline"))


def hide_secrets(text: str) -> str:
    """The text with the values of assignments hidden whose keys look like those of secrets."""
    parts, end = [], 0
    for key in _KEY.finditer(text):
        value = _VALUE.match(text, key.end()) if _SECRET.search(key[1]) else None
        if value is not None and key.start() >= end:
            parts += [text[end : key.end()], HIDDEN]
            end = value.end()
    return "".join([*parts, text[end:]])


def user() -> dict[str, Any]:
    """Who the agent is on the board: what this user may not do is what the probe calls blocked."""
    return {
        "uid": os.geteuid(),
        "name": _name_of(os.geteuid()),
        "groups": [_group_of(group) for group in os.getgroups()],
    }


def _name_of(uid: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def _group_of(gid: int) -> str:
    try:
        import grp

        return grp.getgrgid(gid).gr_name
    except (ImportError, KeyError):
        return str(gid)

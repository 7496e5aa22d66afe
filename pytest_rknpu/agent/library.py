"""Opens what the key ``library`` of a request names: a shared object, or the entry of a software library."""

from __future__ import annotations

import ctypes
import importlib
import os
import struct
from typing import Any, Callable, NamedTuple

from .failures import LibraryFailure, ProgramFailure
from .structures import native_pointer_bits

ELF_MAGIC = b"\x7fELF"
_ARM, _AARCH64 = 40, 183
ELF_MACHINES = {3: "x86", _ARM: "arm", 62: "x86-64", _AARCH64: "aarch64", 243: "riscv"}
_SDK_FOLDERS = {
    _ARM: "rknpu2/runtime/Linux/librknn_api/armhf; armhf-uclibc beside it for librknnmrt.so",
    _AARCH64: "rknpu2/runtime/Linux/librknn_api/aarch64",
}
LIBRARY_FOLDERS = (
    "usr/lib",
    "usr/lib64",
    "lib",
    "lib64",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/arm-linux-gnueabihf",
    "usr/local/lib",
    "oem/usr/lib",
    "oem/lib",
    "vendor/lib64",
    "vendor/lib",
    "system/lib64",
    "system/lib",
)
"""Where images keep the runtime (Debian, Buildroot, Luckfox's /oem, Android's /vendor), below the root."""


class ElfKind(NamedTuple):
    """What the header of an ELF file says: word size in bits, byte order, machine number."""

    bits: int
    little_endian: bool
    machine: int

    def describe(self) -> str:
        machine = ELF_MACHINES.get(self.machine, f"machine {self.machine}")
        return f"{self.bits}-bit {machine}{'' if self.little_endian else ' (big endian)'}"


class Library(NamedTuple):
    """An open library: ``symbol(name)`` is the address of a C function or None; ``owner`` keeps it alive."""

    symbol: Callable[[str], int | None]
    owner: Any
    context_bits: int


def parse_elf(head: bytes) -> ElfKind:
    """Kind of an ELF file by its first 20 bytes; ``LibraryFailure`` says what they look like instead."""
    if not head.startswith(ELF_MAGIC):
        raise LibraryFailure(f"invalid ELF header: this is {_looks_like(head)}")
    if len(head) < 20 or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise LibraryFailure("invalid ELF header: the file is cut off or damaged")
    little = head[5] == 1
    (machine,) = struct.unpack("<H" if little else ">H", head[18:20])
    return ElfKind(64 if head[4] == 2 else 32, little, machine)


def _looks_like(head: bytes) -> str:
    if not head:
        return "an empty file"
    if head.startswith(b"version https://"):
        return "a Git LFS pointer, not the file it stands for"
    if head.lstrip()[:1] in (b"<", b"{"):
        return "a web page or JSON answer (a failed download)"
    if head.startswith((b"PK", b"\x1f\x8b", b"!<arch>")):
        return "an archive that was not unpacked"
    return f"no ELF file (it begins with {head[:8].hex()})"


def check_shared_object(path: str, root: str = "/") -> ElfKind:
    """Refuse a file that this process cannot load, before the loader says so in fewer words.

    ``root``: the folder that stands for ``/``; the interpreter is the one that its /proc/self/exe is. Raises
    ``LibraryFailure`` for a missing or unreadable file, one that is no ELF file, and one for another
    architecture than the interpreter's.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        raise LibraryFailure(
            f"{path}: cannot be read: {error.strerror}; install the RKNN runtime there"
        ) from error
    try:
        found = parse_elf(head)
    except LibraryFailure as error:
        raise LibraryFailure(f"{path}: {error}; copy the runtime library again") from None
    own = interpreter_kind(root)
    if own is not None and found != own:
        raise LibraryFailure(
            f"{path}: built for {found.describe()}, but this Python is {own.describe()}; "
            f"{_other_kind(found, own)}"
        )
    return found


def _other_kind(found: ElfKind, own: ElfKind) -> str:
    """What to do about a library of another kind than the interpreter."""
    wanted = _SDK_FOLDERS.get(own.machine)
    where = f" (the SDK's {wanted})" if wanted else ""
    remedy = f"install the runtime for this architecture{where}"
    if {found.machine, own.machine} == {_ARM, _AARCH64}:
        remedy += f", or use a {found.bits}-bit Python (key `python` of boards.toml)"
    return remedy


def interpreter_kind(root: str = "/") -> ElfKind | None:
    """What the running interpreter is built for; None where nobody can tell."""
    try:
        with open(os.path.join(root, "proc/self/exe"), "rb") as file:
            return parse_elf(file.read(64))
    except (OSError, LibraryFailure):
        return None


def find_library(path: str, root: str = "/") -> str | None:
    """The file that ``path`` means: itself where it has a folder, else the first in ``LIBRARY_FOLDERS``."""
    if os.sep in path:
        below = os.path.join(root, path.lstrip(os.sep))
        return below if os.path.exists(below) else path
    return next(iter(installed_libraries(path, root)), None)


def installed_libraries(name: str, root: str = "/") -> list[str]:
    """The files of that name in ``LIBRARY_FOLDERS``, each once however many links lead to it.

    A link that leads nowhere counts where there is nothing else: it says more than that nothing was found.
    """
    candidates = [os.path.join(root, folder, name) for folder in LIBRARY_FOLDERS]
    there = [candidate for candidate in candidates if os.path.exists(candidate)]
    found: dict[str, str] = {}
    for candidate in there or [candidate for candidate in candidates if os.path.islink(candidate)]:
        found.setdefault(os.path.realpath(candidate), candidate)
    return list(found.values())


def _open_shared_object(path: Any) -> Any:
    if not isinstance(path, str) or not path:
        raise ProgramFailure("library: 'path' must be a non-empty string")
    found = find_library(path)
    if found is not None:
        check_shared_object(found)
    try:
        handle = ctypes.CDLL(found or path)
    except OSError as error:
        raise LibraryFailure(f"{found or path}: the loader refused it: {error}") from error

    def symbol(name: str) -> int | None:
        try:
            return ctypes.cast(getattr(handle, name), ctypes.c_void_p).value
        except AttributeError:
            return None

    return symbol, handle


def _open_python(entry: Any, options: Any) -> Any:
    if not isinstance(entry, str) or entry.count(":") != 1 or not isinstance(options, dict):
        raise ProgramFailure("library: 'entry' must be 'module:function' and 'options' a dict")
    module_name, function_name = entry.split(":")
    try:
        opened = getattr(importlib.import_module(module_name), function_name)(dict(options))
        symbol = opened.symbol
    except (Exception, SystemExit) as error:
        raise LibraryFailure(f"{entry} did not open: {type(error).__name__}: {error}") from error
    return symbol, opened


_KEYS = {
    "shared-object": {"kind", "path", "context_bits"},
    "python": {"kind", "entry", "options", "context_bits"},
}


def open_library(spec: Any) -> Library:
    """Open a library by its specification (docs/command-lists.md, "library").

    Raises ``ProgramFailure`` for a malformed specification and ``LibraryFailure`` where it cannot be opened.
    """
    kind = spec.get("kind") if isinstance(spec, dict) else None
    if not isinstance(kind, str) or kind not in _KEYS:
        raise ProgramFailure(f"library: 'kind' must be one of {sorted(_KEYS)}")
    unknown = set(spec) - _KEYS[kind]
    if unknown:
        raise ProgramFailure(f"library: unknown keys {sorted(map(str, unknown))}")
    bits = spec.get("context_bits", 64)
    if bits not in (32, 64) or isinstance(bits, bool):
        raise ProgramFailure("library: 'context_bits' must be 32 or 64")
    if kind == "shared-object":
        symbol, owner = _open_shared_object(spec.get("path"))
        # The header makes it uint32_t wherever __arm__ is defined: also for librknnrt in a 32-bit user space.
        bits = min(bits, native_pointer_bits())
    else:
        symbol, owner = _open_python(spec.get("entry"), spec.get("options", {}))
    return Library(symbol, owner, bits)

"""Opening a library: what cannot be loaded is refused with words that help."""

from __future__ import annotations

import contextlib
import ctypes
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent.binding import Binding
from pytest_rknpu.agent.failures import LibraryFailure, MissingFunction
from pytest_rknpu.agent.library import (
    check_shared_object,
    find_library,
    installed_libraries,
    open_library,
    parse_elf,
)
from pytest_rknpu.agent.structures import layouts, native_pointer_bits


def elf(bits: int = 64, machine: int = 183, order: str = "<") -> bytes:
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    return ident + struct.pack(order + "HHI", 3, machine, 1) + bytes(40)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html><html>404", "a web page"),
        (b'  {"message": "Not Found"}', "a web page or JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "a Git LFS pointer"),
        (b"PK\x03\x04 zip", "an archive"),
        (b"MZ\x90", "no ELF file"),
        (b"\x7fELF", "cut off"),
        (b"\x7fELF\x09\x09" + bytes(30), "cut off or damaged"),
    ],
)
def test_a_bad_download_is_told_for_what_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(content)
    with pytest.raises(LibraryFailure, match="invalid ELF header") as caught:
        open_library({"kind": "shared-object", "path": str(path)})
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_library_for_another_architecture_is_told(tmp_path: Path) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(elf(bits=32, machine=8))
    with pytest.raises(LibraryFailure, match="built for 32-bit machine 8, but this Python is"):
        check_shared_object(str(path))


def test_a_missing_library_is_told(tmp_path: Path) -> None:
    with pytest.raises(LibraryFailure, match="cannot be read: No such file"):
        open_library({"kind": "shared-object", "path": str(tmp_path / "librknnrt.so")})
    with pytest.raises(LibraryFailure, match="the loader refused it"):
        open_library({"kind": "shared-object", "path": "librknn-that-nobody-has.so"})


@pytest.mark.parametrize(("pointer_bits", "context_bits"), [(64, 64), (32, 32)])
def test_contexts_are_32_bits_wide_in_a_32_bit_process(
    fake_runtime: str, monkeypatch: pytest.MonkeyPatch, pointer_bits: int, context_bits: int
) -> None:
    """As the header has it: also for librknnrt of an rk3588 or rk3566 whose user space is armhf."""
    monkeypatch.setattr("pytest_rknpu.agent.library.native_pointer_bits", lambda: pointer_bits)
    opened = open_library({"kind": "shared-object", "path": fake_runtime, "context_bits": 64})
    assert opened.context_bits == context_bits


def test_a_damaged_library_with_a_right_header_is_the_loaders_business(
    tmp_path: Path, fake_runtime: str
) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(Path(fake_runtime).read_bytes()[:200])
    with pytest.raises(LibraryFailure, match="the loader refused it"):
        open_library({"kind": "shared-object", "path": str(path)})


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (elf(), "64-bit aarch64"),
        (elf(32, 40), "32-bit arm"),
        (elf(64, 62), "64-bit x86-64"),
        (elf(64, 21, ">"), "64-bit machine 21 (big endian)"),
    ],
)
def test_elf_headers(head: bytes, words: str) -> None:
    assert parse_elf(head).describe() == words


@given(st.binary(max_size=64) | st.binary(max_size=40).map(lambda rest: b"\x7fELF" + rest))
def test_no_header_makes_the_parser_raise_anything_else(head: bytes) -> None:
    with contextlib.suppress(LibraryFailure):
        assert parse_elf(head).bits in (32, 64)


def test_a_bare_name_is_found_where_images_keep_it(tmp_path: Path) -> None:
    folder = tmp_path / "oem" / "usr" / "lib"
    folder.mkdir(parents=True)
    (folder / "librknnmrt.so").touch()
    assert find_library("librknnmrt.so", str(tmp_path)) == str(folder / "librknnmrt.so")
    assert find_library("librknnrt.so", str(tmp_path)) is None
    assert find_library("/anywhere/x.so", str(tmp_path)) == "/anywhere/x.so"


def test_functions_are_looked_up_when_needed(library: dict[str, Any]) -> None:
    opened = open_library(library)
    binding = Binding(opened.symbol, layouts(native_pointer_bits(), 64))
    assert "rknn_init" in binding.exported()
    assert "rknn_create_mem2" not in binding.exported()
    with pytest.raises(MissingFunction, match="does not export rknn_create_mem2"):
        binding.function("rknn_create_mem2")
    assert binding.function("rknn_mem_sync") is binding.function("rknn_mem_sync")
    assert binding.function("rknn_mem_sync")(0, 0, 1) == -5


def test_a_software_library_answers_through_c_function_pointers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64)
    run = kind(lambda context, extend: seen.append((context, extend)) or -2)

    class Software:
        def symbol(self, name: str) -> int | None:
            return ctypes.cast(run, ctypes.c_void_p).value if name == "rknn_run" else None

    module = type(sys)("software_for_tests")
    module.open_library = lambda options: Software() if options == {"seed": 1} else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "software_for_tests", module)
    spec = {
        "kind": "python",
        "entry": "software_for_tests:open_library",
        "options": {"seed": 1},
        "context_bits": 32,
    }
    opened = open_library(spec)
    binding = Binding(opened.symbol, layouts(64, opened.context_bits))
    assert binding.exported() == ["rknn_run"]
    assert binding.function("rknn_run")(2**32 - 1, 0) == -2
    assert seen == [(2**32 - 1, 0)]
    with pytest.raises(LibraryFailure, match="software_for_tests:open_library did not open"):
        open_library({**spec, "options": {}})


@pytest.mark.parametrize("entry", ["no_such_module_anywhere:open", "os:no_such_function", "sys:exit"])
def test_a_software_library_that_does_not_open_is_told(entry: str) -> None:
    with pytest.raises(LibraryFailure, match="did not open"):
        open_library({"kind": "python", "entry": entry, "options": {}})


def test_a_link_that_leads_nowhere_is_named_where_there_is_nothing_else(tmp_path: Path) -> None:
    link = tmp_path / "usr/lib/librknnrt.so"
    link.parent.mkdir(parents=True)
    link.symlink_to("librknnrt.so.2.3.2")
    assert find_library("librknnrt.so", str(tmp_path)) == str(link)
    with pytest.raises(LibraryFailure, match="cannot be read: No such file"):
        check_shared_object(str(link), str(tmp_path))
    other = tmp_path / "usr/lib64/librknnrt.so"
    other.parent.mkdir()
    other.touch()
    assert installed_libraries("librknnrt.so", str(tmp_path)) == [str(other)]


def test_copies_of_a_library_count_once(tmp_path: Path) -> None:
    for folder in ("usr/lib", "usr/lib/aarch64-linux-gnu", "usr/local/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/lib/librknnrt.so").touch()
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "usr/lib/aarch64-linux-gnu/librknnrt.so").symlink_to("../librknnrt.so")
    assert installed_libraries("librknnrt.so", str(tmp_path)) == [str(tmp_path / "usr/lib/librknnrt.so")]
    (tmp_path / "usr/local/lib/librknnrt.so").touch()
    assert len(installed_libraries("librknnrt.so", str(tmp_path))) == 2


@pytest.mark.parametrize(
    ("library", "python", "words"),
    [
        (
            elf(32, 40),
            elf(),
            "built for 32-bit arm, but this Python is 64-bit aarch64; .*or use a 32-bit Python",
        ),
        (
            elf(),
            elf(32, 40),
            "built for 64-bit aarch64, but this Python is 32-bit arm; .*or use a 64-bit Python",
        ),
        (elf(64, 62), elf(), "built for 64-bit x86-64, but this Python is 64-bit aarch64; .*/aarch64\\)$"),
    ],
)
def test_another_kind_of_library_is_named_with_the_remedy(
    tmp_path: Path, library: bytes, python: bytes, words: str
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/exe").write_bytes(python)
    (tmp_path / "librknnrt.so").write_bytes(library)
    with pytest.raises(LibraryFailure, match=words):
        check_shared_object(str(tmp_path / "librknnrt.so"), str(tmp_path))


def test_an_absolute_path_is_taken_below_the_root(tmp_path: Path) -> None:
    library = tmp_path / "opt/rknn/librknnrt.so"
    library.parent.mkdir(parents=True)
    library.touch()
    assert find_library("/opt/rknn/librknnrt.so", str(tmp_path)) == str(library)

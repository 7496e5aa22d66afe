"""Coverage-guided search for input that a parser answers with anything but our own error: needs atheris.

    pip install atheris && python tests/fuzz_parsers.py rknn -max_total_time=60

The options behind the parser's name are libFuzzer's. It starts from real files and ends with exit code 0
where nothing was found; else it leaves the input in the working folder (crash-..., timeout-...). The
properties of the tests take more inputs by RKNPU_TEST_EXAMPLES.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pytest_rknpu", "tomllib"]):
    from pytest_rknpu.agent import kernel_log, library, parsers
    from pytest_rknpu.errors import RknpuError
    from pytest_rknpu.inventory.schema import load_boards
    from pytest_rknpu.toolchain.build_log import parse_build_log
    from pytest_rknpu.toolchain.rknn_file import read_header
    from pytest_rknpu.waivers import load_waivers

ROOT = Path(__file__).resolve().parents[1]
Parser = Callable[[bytes], object]


@dataclass(frozen=True)
class Target:
    """``parse`` may raise RknpuError; ``seeds`` are real inputs."""

    parse: Parser
    seeds: Iterable[Path] = ()


def of_text(parse: Callable[[str], object]) -> Parser:
    return lambda data: parse(data.decode("utf-8", "replace"))


def of_file(load: Callable[[Path], object]) -> Parser:
    """For what reads a file by its name."""
    file = Path(tempfile.mkdtemp(prefix="rknpu-fuzz-")) / "input.toml"

    def parse(data: bytes) -> object:
        file.write_bytes(data)
        return load(file)

    return parse


def versions(data: bytes) -> None:
    """All that an agent reads on a board."""
    text = data.decode("utf-8", "replace")
    for parse in (parsers.parse_version, parsers.parse_os_release, parsers.parse_build_properties):
        parse(text)
    parsers.parse_npu_load(text)
    parsers.parse_uevent(text)
    parsers.library_version(data)
    parsers.server_version(data)
    records = kernel_log.parse_kernel_log(text)
    kernel_log.driver_in(kernel_log.about_the_npu(records))
    with suppress(library.LibraryFailure):  # the agent has no RknpuError
        library.parse_elf(data)


TARGETS: Mapping[str, Target] = {
    "boards": Target(of_file(load_boards), [ROOT / "boards.toml"]),
    "waivers": Target(of_file(load_waivers), ROOT.glob("tests/waivers/*.toml")),
    "rknn": Target(read_header, list(ROOT.glob("pytest_rknpu/prebuilt/files/*/*.rknn"))[:20]),
    "build-log": Target(of_text(parse_build_log), ROOT.glob("tests/toolchain/logs/*.log")),
    "versions": Target(versions),
}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        raise SystemExit(f"{__doc__}\nparsers: {', '.join(TARGETS)}")
    target = TARGETS[name]

    def try_one(data: bytes) -> None:
        with suppress(RknpuError):
            target.parse(data)

    corpus = tempfile.mkdtemp(prefix="rknpu-corpus-")
    for number, seed in enumerate(target.seeds):
        os.symlink(seed, Path(corpus) / str(number))
    atheris.Setup([sys.argv[0], *sys.argv[2:], "-timeout=10", corpus], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

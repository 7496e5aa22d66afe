"""The vendor's runtime through a C program (programs/probe.c): what it printed, read back."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu import prebuilt
from tests.vendor_rig import parts
from tests.vendor_rig.rig import RUNTIME, RigBoard

SECONDS = 120


@dataclass(frozen=True)
class Seen:
    """One run of the program: its calls with their codes in order, the outputs, and how it ended."""

    calls: tuple[tuple[str, str], ...]
    outputs: tuple[bytes, ...]
    exit_code: int
    log: str

    def code(self, call: str) -> int:
        """What the last such call returned."""
        return int(dict(self.calls)[call])


@dataclass(frozen=True)
class ThinPath:
    """Runs shipped models on ``board``; ``folder`` takes the files that the program reads."""

    board: RigBoard
    folder: Path

    def run(
        self,
        model: str,
        inputs: Sequence[bytes],
        way: str = "zero-copy",
        *,
        core_mask: int = 0,
        internal: int = 0,
    ) -> Seen:
        """Infer native ``inputs`` one after another in one context; ``way`` as in programs/probe.c."""
        program = parts.compiled(parts.HERE / "programs", "probe")
        file = self.folder / f"{model}-{self.board.soc}.rknn"
        file.write_bytes(prebuilt.load(model, self.board.soc).content)
        names = []
        for number, data in enumerate(inputs):
            names.append(self.folder / f"input{number}")
            names[-1].write_bytes(data)
        words = ["/" + RUNTIME, file, way, core_mask, internal, *names]
        command = [str(self.board.program), str(program), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        pairs = [tuple(line.split(" ", 1)) for line in done.stdout.splitlines() if " " in line]
        calls = tuple((name, rest) for name, rest in pairs if name != "output")
        outputs = tuple(bytes.fromhex(rest) for name, rest in pairs if name == "output")
        return Seen(calls, outputs, done.returncode, done.stdout + done.stderr)


@dataclass(frozen=True)
class Shape:
    """How the native input and output of a shipped model lie: bytes, and (C1, H, W, C2) with C channels."""

    input_bytes: int
    channels: int
    planes: tuple[int, int, int, int]

    def logical(self, native: bytes) -> bytes:
        """The NCHW bytes of a native NC1HWC2 output."""
        c1, height, width, c2 = self.planes
        array: NDArray[np.int8] = np.frombuffer(native, np.int8)[: c1 * height * width * c2]
        moved = array.reshape(c1, height, width, c2).transpose(0, 3, 1, 2)
        return moved.reshape(c1 * c2, height, width)[: self.channels].tobytes()


SHAPES = {
    ("rk3588", "probe_pointwise"): Shape(4096, 16, (2, 16, 16, 16)),
    ("rk3588", "probe_chain"): Shape(4096, 32, (2, 8, 8, 16)),
    ("rk3588", "probe_wide"): Shape(4096, 24, (2, 8, 8, 16)),
    ("rk3566", "probe_pointwise"): Shape(4096, 16, (2, 16, 16, 8)),
    ("rk3566", "probe_chain"): Shape(4096, 32, (4, 8, 8, 8)),
    ("rk3566", "probe_wide"): Shape(4096, 24, (4, 8, 8, 8)),
}


def random_inputs(size: int, count: int, seed: int = 1) -> list[bytes]:
    """``count`` different inputs of ``size`` bytes."""
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 256, size, np.uint8).tobytes() for _ in range(count)]

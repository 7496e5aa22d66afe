"""What this package adds to RKNN-Toolkit2's own time: the same builds and simulations by hand and through it.

    python benchmarks/toolkit_overhead.py

One process that imports the toolkit once and works by hand, against compile_model and simulate with a cold
cache, one job at a time. Printed as a ratio of one run, not asserted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PLATFORMS = ("rk3588", "rk3576")
NAMES = ("digits_cnn", "probe_chain", "probe_wide", "probe_stride", "probe_pointwise")

BY_HAND = """
import sys
from pathlib import Path
import numpy as np
from rknn.api import RKNN

folder = Path(sys.argv[1])
for platform in sys.argv[2].split(","):
    for name in sys.argv[3].split(","):
        rknn = RKNN(verbose=True)
        samples = np.load(folder / f"{name}.npy")
        rknn.config(target_platform=platform)
        assert rknn.load_onnx(str(folder / f"{name}.onnx")) == 0
        assert rknn.build(do_quantization=True, dataset=str(folder / f"{name}.txt")) == 0
        assert rknn.export_rknn(str(folder / f"{name}.rknn")) == 0
        assert rknn.init_runtime() == 0
        for sample in samples:
            assert rknn.inference([sample[None]], data_format="nchw") is not None
        rknn.release()
"""


def by_hand(folder: Path) -> float:
    """Seconds of a script that does nothing but call the toolkit."""
    from pytest_rknpu import models

    for name in NAMES:
        model = models.load(name)
        (folder / f"{name}.onnx").write_bytes(model.float_onnx)
        np.save(folder / f"{name}.npy", model.calibration)
        files = []
        for number, sample in enumerate(model.calibration):
            np.save(folder / f"{name}-{number}.npy", sample[None])
            files.append(str(folder / f"{name}-{number}.npy"))
        (folder / f"{name}.txt").write_text("\n".join(files) + "\n")
    command = [sys.executable, "-c", BY_HAND, str(folder), ",".join(PLATFORMS), ",".join(NAMES)]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def through_the_package() -> float:
    """Seconds of the same builds and simulations by simulate and compile_model."""
    from pytest_rknpu import models
    from pytest_rknpu.toolchain import CompileOptions, compile_model, simulate

    started = time.perf_counter()
    for platform in PLATFORMS:
        for name in NAMES:
            model = models.load(name)
            options = CompileOptions(platform, model.calibration)
            simulate(model.float_onnx, options, [sample[None] for sample in model.calibration])
            compile_model(model.float_onnx, options)
    return time.perf_counter() - started


def main() -> None:
    """By hand, cold and warm, in one go."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["RKNPU_CACHE_DIR"] = str(Path(name) / "cache")
        (Path(name) / "hand").mkdir()
        hand = by_hand(Path(name) / "hand")
        cold, warm = through_the_package(), through_the_package()
    print(f"by hand {hand:.1f} s; cold {cold:.1f} s, ratio {cold / hand:.2f}; warm {warm:.1f} s")


if __name__ == "__main__":
    main()

"""What this package adds to RKNN-Toolkit2's own time: the same builds and simulations by hand and through it.

    python benchmarks/toolkit_overhead.py [--rounds 3] [tiny digits mobilenet suites ...]

By hand: one process that imports the toolkit once and does nothing but call it, on files that are there.
Through the package: one process with an empty cache folder that simulates and compiles each model (cold), one
that finds the builds and simulates again (anew), and one that is given the stored outputs too (warm). Each is
a process of its own, with the start of its interpreter, and they take turns, so that a busy machine hits all
alike. Wall time, and processor time of the process and of all that it started. Ratios are medians of the
rounds; nothing is asserted.

"in the toolkit" is processor time that the jobs measured between calls of the toolkit and their return: it
holds what a fork makes dearer in them, but no import. ``suites`` has no script by hand: it is `pytest
suites/sparse suites/accuracy` on the simulator boards, cold and warm.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLATFORMS = ("rk3588", "rk3576")
WAYS = ("cold", "anew", "warm")
Floats = NDArray[np.float32]

BY_HAND = """
import json, os, sys
import numpy as np
from rknn.api import RKNN

for work in json.load(open(sys.argv[1])):
    rknn = RKNN(verbose=True)
    samples = np.load(work["samples"])
    rknn.config(target_platform=work["platform"])
    assert rknn.load_onnx(work["onnx"]) == 0
    assert rknn.build(do_quantization=True, dataset=work["dataset"]) == 0
    assert rknn.export_rknn(work["rknn"]) == 0
    assert rknn.init_runtime() == 0
    for sample in samples:
        assert rknn.inference([sample[None]], data_format="nchw") is not None
    rknn.release()
"""


@dataclass(frozen=True)
class Work:
    """A model for a platform: quantised on ``calibration`` and simulated on ``samples``, both (N, ...)."""

    platform: str
    onnx: bytes
    calibration: Floats
    samples: Floats


def tiny() -> list[Work]:
    """Probes of a few layers, one of the classifiers, and as many samples as calibrate them."""
    return [_shipped(platform, name) for platform in PLATFORMS for name in _TINY]


def digits() -> list[Work]:
    """The shipped classifiers on their whole labelled sets, as ACC-01 and SPARSE-05 simulate them."""
    return [_shipped(platform, name, labelled=True) for platform in PLATFORMS for name in _CLASSIFIERS]


def mobilenet() -> list[Work]:
    """A network of MobileNet's layers and size at 224x224, with weights of no meaning."""
    random = np.random.default_rng(1)
    onnx = _mobilenet(random)
    pictures = random.standard_normal((16, 3, 224, 224), dtype=np.float32)
    return [Work(platform, onnx, pictures, pictures) for platform in PLATFORMS]


SETS = {function.__name__: function for function in (tiny, digits, mobilenet)}
_CLASSIFIERS = ("digits_cnn", "digits_aligned", "digits_unaligned")
#: Channels and stride of each block of MobileNet 1.0 (arXiv:1704.04861, table 1).
_BLOCKS = (
    ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2))
    + ((512, 1),) * 5
    + ((1024, 2), (1024, 1))
)  # fmt: skip
_TINY = ("digits_cnn", "probe_chain", "probe_wide", "probe_stride", "probe_pointwise")


def _shipped(platform: str, name: str, *, labelled: bool = False) -> Work:
    from pytest_rknpu import models

    model = models.load(name)
    samples = models.load_labelled(name).inputs if labelled else model.calibration
    return Work(platform, model.float_onnx, model.calibration, samples)


def _mobilenet(random: np.random.Generator) -> bytes:
    from pytest_rknpu.models.recipes.graph import GraphBuilder

    graph = GraphBuilder("mobilenet")

    def layer(name: str, source: str, out: int, each: int, kernel: int, stride: int, groups: int) -> str:
        weights = random.standard_normal((out, each, kernel, kernel), dtype=np.float32)
        weights /= np.sqrt(each * kernel * kernel / 2)
        bias = np.zeros(out, np.float32)
        made = graph.convolution(name, source, weights, bias, stride=stride, groups=groups)
        return graph.relu(f"{name}.relu", made)

    top, channels = layer("first", "input", 32, 3, 3, 2, 1), 32
    for number, (out, stride) in enumerate(_BLOCKS):
        top = layer(f"depth{number}", top, channels, 1, 3, stride, channels)
        top, channels = layer(f"point{number}", top, out, channels, 1, 1, 1), out
    scores = random.standard_normal((1000, 1024, 1, 1), dtype=np.float32) / 32
    last = graph.convolution("scores", top, scores, np.zeros(1000, np.float32))
    return graph.finish("input", (3, 224, 224), {last: (1000, 7, 7)})


@dataclass(frozen=True)
class Cost:
    """Seconds; ``toolkit``, processor time, only of the jobs that the package ran."""

    wall: float
    processor: float
    toolkit: float = 0.0
    jobs: int = 0


def run(command: Sequence[str], environment: Mapping[str, str], output: Path) -> tuple[float, float]:
    """Wall and processor time of a command and of all processes that it has waited for."""
    with output.open("wb") as file:
        begin = time.perf_counter()
        process = subprocess.Popen(command, env=environment, cwd=output.parent, stdout=file, stderr=file)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed:\n{output.read_text(errors='replace')[-3000:]}")
    return wall, used.ru_utime + used.ru_stime


def by_hand(works: Sequence[Work], folder: Path) -> Cost:
    """A script that does nothing but call the toolkit."""
    described = []
    for number, work in enumerate(works):
        files = [folder / f"{number}-{sample}.npy" for sample in range(len(work.calibration))]
        for file, row in zip(files, work.calibration, strict=True):
            np.save(file, row[None])
        paths = {key: str(folder / f"{number}.{key}") for key in ("onnx", "rknn", "dataset", "samples.npy")}
        Path(paths["onnx"]).write_bytes(work.onnx)
        Path(paths["dataset"]).write_text("\n".join(map(str, files)) + "\n")
        np.save(paths["samples.npy"], work.samples)
        described.append({**paths, "samples": paths["samples.npy"], "platform": work.platform})
    (folder / "works.json").write_text(json.dumps(described))
    command = [sys.executable, "-c", BY_HAND, str(folder / "works.json")]
    return Cost(*run(command, os.environ, folder / "hand.log"))


def through_the_package(works: Path, way: str, cache: Path) -> Cost:
    """Another run of this file, which simulates and compiles the pickled ``works``."""
    return _told([str(Path(__file__).resolve()), str(works), "--worker", way], cache)


def through_pytest(cache: Path) -> Cost:
    """The suites, with this file as a plugin that notes the jobs."""
    suites = [str(Path(__file__).resolve().parents[1] / "suites" / name) for name in ("sparse", "accuracy")]
    options = ["--boards", str(Path(suites[0]).parents[1] / "boards.toml"), "--board", "sim*", "-q"]
    return _told(
        ["-m", "pytest", *suites, *options, "-p", Path(__file__).stem, "-p", "no:cacheprovider"], cache
    )


def _told(arguments: Sequence[str], cache: Path) -> Cost:
    """The cost of a run of Python with a cache folder, which writes down its jobs."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH")]))
    note = cache.parent / "note.json"
    environment = {**os.environ, "RKNPU_CACHE_DIR": str(cache), "JOBS_NOTE": str(note), "PYTHONPATH": path}
    wall, processor = run([sys.executable, *arguments], environment, cache.parent / "package.log")
    told = json.loads(note.read_text())
    return Cost(wall, processor, told["toolkit_s"], told["jobs"])


class Jobs:
    """Notes what the jobs of this process spent in the toolkit."""

    def __init__(self) -> None:
        self.jobs, self.toolkit_s = 0, 0.0

    def watch(self) -> None:
        from pytest_rknpu.toolchain import compile, simulator

        run_child = compile.run_child

        def run_and_note(*given: Any) -> Mapping[str, Any]:
            self.jobs += 1
            reply = run_child(*given)
            self.toolkit_s += reply["processor_s"]
            return reply

        compile.run_child = simulator.run_child = run_and_note

    def write(self) -> None:
        Path(os.environ["JOBS_NOTE"]).write_text(json.dumps(vars(self)))


_jobs = Jobs()


def pytest_configure() -> None:
    """As a plugin, by ``-p``."""
    _jobs.watch()


def pytest_unconfigure() -> None:
    _jobs.write()


def worker(works: Path, way: str) -> None:
    """Does a set by ``compile_model`` and ``simulation_of``; or by ``simulate``, which is given nothing."""
    from pytest_rknpu.toolchain import CompileOptions, compile_model, simulate, simulation_of

    _jobs.watch()
    for work in (Work(**fields) for fields in pickle.loads(works.read_bytes())):
        options = CompileOptions(work.platform, work.calibration)
        if way == "anew":
            simulate(work.onnx, options, [sample[None] for sample in work.samples])
        else:
            simulation_of(work.onnx, options, [work.samples[:, None]])
        compile_model(work.onnx, options)
    _jobs.write()


def compare(name: str, rounds: int) -> None:
    """Takes the three ways in turns and prints what each cost."""
    works = SETS[name]()
    costs: list[dict[str, Cost]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "hand").mkdir()
            cache, pickled = Path(folder) / "cache", Path(folder) / "works"
            pickled.write_bytes(pickle.dumps([vars(work) for work in works]))
            hand = by_hand(works, Path(folder) / "hand")
            costs.append({"by hand": hand} | {way: through_the_package(pickled, way, cache) for way in WAYS})
    print(f"{name}: {len(works)} builds, {sum(len(work.samples) for work in works)} simulated samples")
    show(costs)


def time_suites(rounds: int) -> None:
    """The suites with an empty cache folder and once more with it."""
    costs: list[dict[str, Cost]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache"
            costs.append({way: through_pytest(cache) for way in ("cold", "warm")})
    print("suites/sparse and suites/accuracy on the simulator boards")
    show(costs)


def show(costs: Sequence[Mapping[str, Cost]]) -> None:
    """Medians of the rounds, a line for each way."""
    for way in costs[0]:
        wall, processor, toolkit = (
            statistics.median(getattr(cost[way], key) for cost in costs)
            for key in ("wall", "processor", "toolkit")
        )
        line = f"  {way:8} wall {wall:6.2f} s   processor {processor:6.2f} s"
        if way != "by hand":
            line += f"   {costs[0][way].jobs:3} jobs, {toolkit:6.2f} s in the toolkit"
            if "by hand" in costs[0]:
                ratios = [
                    statistics.median(
                        getattr(cost[way], key) / getattr(cost["by hand"], key) for cost in costs
                    )
                    for key in ("wall", "processor")
                ]
                line += f"   to by hand: {ratios[0]:.2f} wall, {ratios[1]:.2f} processor"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[*SETS, "suites"], help="which models; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(Path(options.sets[0]), options.worker)
        return
    for name in options.sets:
        if name == "suites":
            time_suites(options.rounds)
        elif name in SETS:
            compare(name, options.rounds)
        else:
            parser.error(f"no set {name!r}: there are {', '.join(SETS)} and suites")
    print(f"medians of {options.rounds} rounds")


if __name__ == "__main__":
    main()

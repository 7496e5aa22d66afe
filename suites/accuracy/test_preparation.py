"""ACC-05: mean and deviation, channel order and layout are applied, and applied once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.measure import compare_samples, judge_outputs, violations, worst
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.pictures import png
from pytest_rknpu.models.tolerances import DECLARED
from pytest_rknpu.session.builds import why_nothing_is_built
from pytest_rknpu.session.pictures import infer_pictures
from pytest_rknpu.session.simulator import Note, simulated
from pytest_rknpu.toolchain import CompileOptions, ModelSource, compile_model
from pytest_rknpu.toolchain.side_by_side import side_by_side

Floats = NDArray[np.float32]

MODEL = "digits_cnn"
SAMPLES = 24
# Each channel has its own, so that a channel that is taken for another shows.
MEAN, DEVIATION = (120.0, 128.0, 136.0), (52.0, 64.0, 80.0)


@dataclass(frozen=True)
class Pictures:
    """Bytes (N, 3, H, W), held as float32: what a camera gives for the classifier's inputs."""

    calibration: Floats
    samples: Floats


@lru_cache(maxsize=1)
def pictures() -> Pictures:
    """Calibration data and held-out samples of the classifier, as pictures."""

    def drawn(inputs: Floats) -> Floats:
        values = inputs * per_channel(DEVIATION) + per_channel(MEAN)
        return np.clip(np.rint(values), 0, 255).astype(np.float32)

    held_out = models.load_labelled(MODEL).inputs[:SAMPLES]
    return Pictures(drawn(models.load(MODEL).calibration), drawn(held_out))


def per_channel(values: tuple[float, ...]) -> Floats:
    """One number per channel, to be combined with arrays (N, C, H, W)."""
    return np.array(values, np.float32).reshape(-1, 1, 1)


def normalise(pixels: Floats) -> Floats:
    """As documented for RKNN.config: (pixel - mean) / deviation, channel by channel."""
    return np.asarray((pixels - per_channel(MEAN)) / per_channel(DEVIATION), np.float32)


def swap(pixels: Floats) -> Floats:
    """RGB to BGR."""
    return np.ascontiguousarray(pixels[:, ::-1])


PREPARATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "mean and deviation applied twice": lambda pixels: normalise(normalise(pixels)),
    "mean and deviation not applied": lambda pixels: pixels,
    "red and blue swapped": lambda pixels: normalise(swap(pixels)),
    "red and blue swapped after normalising": lambda pixels: swap(normalise(pixels)),
}
"""What can go wrong with a picture on its way in; each must be told from the right way."""


def options_for(platform: str, **keywords: Any) -> CompileOptions:
    """The classifier with its normalisation compiled in."""
    keywords.setdefault("calibration", pictures().calibration)
    return CompileOptions(platform, mean_values=MEAN, std_values=DEVIATION, **keywords)


@pytest.mark.requirement("ACC-05")
@pytest.mark.needs("arithmetic")
def test_mean_and_deviation_are_applied_once(
    board: LiveBoard, request: pytest.FixtureRequest, record: ItemRecord
) -> None:
    """Pictures in; the float model on normalised ones is the reference, wrong preparations are told apart."""
    actual = outputs_on(board, request, record.note)
    judge_preparation(actual, pictures().samples, record.measure)


def outputs_on(board: LiveBoard, request: pytest.FixtureRequest, note: Note) -> Floats:
    """The scores for all samples: by the simulator, by a connected board, or by the C API (uint8 NHWC, not
    passed through)."""
    proof = why_nothing_is_built(board.board)
    if proof is not None:
        pytest.skip(proof)
    options = options_for(board.board.platform)
    if board.board.runtime == "simulator":
        return unswapped(board.board.platform, note)
    rknn = compile_model(models.load(MODEL).float_onnx, options).path.read_bytes()
    if board.board.runtime == "connected":
        outputs: list[Floats] = board.session.run_file(models.load(MODEL), rknn, pictures().samples)
        return outputs[0]
    npu = request.getfixturevalue("npu")
    loaded = npu.load(MODEL, rknn)
    return infer_pictures(npu, loaded, pictures().samples.astype(np.uint8))[0]


def judge_preparation(actual: Floats, samples: Floats, report: Callable[[str, float, str], object]) -> None:
    """ConformanceFailure: ``actual`` is not what normalised ``samples`` give; says what it fits instead.

    Inconclusive: a wrong preparation would have passed as well.
    """
    onnx, tolerance = models.load(MODEL).float_onnx, DECLARED[MODEL].against_float[0]
    wrong = {name: run_onnx(onnx, prepare(samples))[0] for name, prepare in PREPARATIONS.items()}
    fitting = [
        name
        for name, scores in wrong.items()
        if not violations(worst(compare_samples(scores, actual)), tolerance)
    ]
    problems = judge_outputs([run_onnx(onnx, normalise(samples))[0]], [actual], [tolerance], report)
    if problems:
        fits = f"; it fits: {', '.join(fitting)}" if fitting else ""
        raise ConformanceFailure(f"not what normalised pictures give: {'; '.join(problems)}{fits}")
    if fitting:
        raise Inconclusive(f"insensitive: these would have passed too: {', '.join(fitting)}")


def scores_of(options: CompileOptions, samples: Floats, note: Note, layout: str = "nchw") -> Floats:
    """The scores by the simulator, fed in the given layout."""
    source = ModelSource("load_onnx", {"model": ("model.onnx", models.load(MODEL).float_onnx)}, layout=layout)
    fed = samples if layout == "nchw" else np.ascontiguousarray(samples.transpose(0, 2, 3, 1))
    return simulated(source, options, [fed[:, np.newaxis]], note)[0]


def unswapped(platform: str, note: Note) -> Floats:
    """The scores of the classifier as it is, for both tests simulated once."""
    scores, notes = _unswapped(platform)
    for text in notes:
        note(text)
    return scores


@lru_cache(maxsize=16)
def _unswapped(platform: str) -> tuple[Floats, tuple[str, ...]]:
    notes: list[str] = []
    scores = scores_of(options_for(platform), pictures().samples, notes.append)
    return scores, tuple(notes)


@pytest.mark.requirement("ACC-05")
def test_channel_order_and_layout_are_applied_once(
    board: LiveBoard, record: ItemRecord, tmp_path: Path
) -> None:
    """quant_img_RGB2BGR swaps the calibration pictures and nothing else; NHWC is transposed as it should be.

    Calibrated on PNG files with the swap and fed as NCHW, or calibrated on arrays swapped here and fed as
    NHWC: the same bytes.
    """
    if board.board.runtime != "simulator":
        pytest.skip(
            f"{board.board.name}: this is what RKNN-Toolkit2 does with calibration pictures and with its own "
            "inputs; simulator boards show it, MEM-09 compares the layouts of a board"
        )
    platform, shown = board.board.platform, pictures()
    files = tuple((path,) for path in written(shown.calibration, tmp_path))
    swapped_files = options_for(
        platform, calibration=None, calibration_files=files, config={"quant_img_RGB2BGR": True}
    )
    swapped_arrays = options_for(platform, calibration=swap(shown.calibration))
    by_files, by_arrays = side_by_side(
        lambda way: scores_of(way[0], shown.samples, record.note, way[1]),
        ((swapped_files, "nchw"), (swapped_arrays, "nhwc")),
    )
    without_swap = unswapped(platform, record.note)
    record.measure("scores compared", by_files.size)
    record.measure("scores that differ", int((by_files != by_arrays).sum()))
    if not np.array_equal(by_files, by_arrays):
        raise ConformanceFailure(
            "pictures swapped by quant_img_RGB2BGR and fed as NCHW give other scores than arrays swapped "
            f"beforehand and fed as NHWC: {int((by_files != by_arrays).sum())} of {by_files.size} differ"
        )
    if np.array_equal(by_files, without_swap):
        raise Inconclusive("insensitive: without the swap the scores are the same")


def written(calibration: Floats, folder: Path) -> list[Path]:
    """The calibration pictures as PNG files."""
    paths = [folder / f"{number}.png" for number in range(len(calibration))]
    for path, pixels in zip(paths, calibration, strict=True):
        path.write_bytes(png(pixels.astype(np.uint8)))
    return paths

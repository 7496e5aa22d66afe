"""The probes: rebuilt to the bit, and telling of every byte of their input."""

from __future__ import annotations

import hashlib

import numpy as np
import onnxruntime
import pytest

from pytest_rknpu import models
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.recipes.figures import dead_input_bytes, entropy_bits, run_stored
from pytest_rknpu.models.recipes.graph import GraphBuilder
from pytest_rknpu.models.recipes.probes import PROBE_GRID, RECIPES, Recipe
from pytest_rknpu.models.recipes.quantise import eleven_bits, power_of_two, quantise
from pytest_rknpu.models.recipes.write import Built, build_probe

BY_NAME = {recipe.name: recipe for recipe in RECIPES}


@pytest.fixture(scope="module", params=sorted(BY_NAME))
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return BY_NAME[request.param]


@pytest.fixture(scope="module")
def built(recipe: Recipe) -> Built:
    return build_probe(recipe)


def test_rebuilding_gives_the_same_bytes(built: Built) -> None:
    provenance = models.load(built.name).provenance
    assert {n: hashlib.sha256(c).hexdigest() for n, c in built.files.items()} == dict(provenance.sha256)
    assert built.entry["measured"] == dict(provenance.measured)


def test_another_seed_gives_other_weights(recipe: Recipe) -> None:
    first, second = (recipe.build(np.random.default_rng(recipe.seed + i)) for i in (0, 1))
    assert first != second


def test_outputs_are_well_spread(built: Built) -> None:
    measured = built.entry["measured"]
    assert measured["output_entropy_bits"] > 6
    assert measured["output_saturated_share"] < 0.02
    assert measured["smallest_channel_deviation_steps"] > 8
    assert measured["dead_input_bytes"] == 0


def test_kernels_that_fuse_compute_the_same_bytes(recipe: Recipe) -> None:
    """Power-of-two scales make each layer exact, so that no int8 kernel that does not overflow can differ.

    On x86 without VNNI those of ONNX Runtime add pairs of products in 16 bits, unless told to be exact.
    """
    model, options = models.load(recipe.name), onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    fused = onnxruntime.InferenceSession(model.qdq_onnx, options, providers=["CPUExecutionProvider"])
    source = fused.get_inputs()[0].name
    results = np.concatenate([fused.run(None, {source: sample[None]})[0] for sample in model.calibration])
    assert np.array_equal(results, run_onnx(model.qdq_onnx, model.calibration)[0])


def test_pointwise_maps_each_byte_to_one_byte_one_to_one() -> None:
    """Exhaustive: each of 256 values in each channel, and the position of its image."""
    recipe = BY_NAME["probe_pointwise"]
    qdq = models.load(recipe.name).qdq_onnx
    ramp = np.arange(-128, 128).astype(np.int8).reshape(16, 16)
    base = np.zeros((1, 16, 16, 16), np.int8)
    reference = run_stored(qdq, recipe.source_grid, base)[0]
    images = []
    for channel in range(16):
        changed = base.copy()
        changed[0, channel] = ramp
        output = run_stored(qdq, recipe.source_grid, changed)[0]
        touched = np.flatnonzero((output != reference).any(axis=(1, 2)))
        assert len(touched) == 1
        image = output[touched[0]]
        assert np.array_equal(image, ramp) or np.array_equal(image, ~ramp)
        images.append(int(touched[0]))
    assert sorted(images) == list(range(16))
    assert images != list(range(16))


def test_wide_has_the_larger_buffers_and_another_shape() -> None:
    chain, wide = (run_onnx(models.load(n).qdq_onnx, models.load(n).calibration[:1])[0] for n in
                   ("probe_chain", "probe_wide"))  # fmt: skip
    assert chain.shape != wide.shape
    assert models.load("probe_stride").calibration.shape[-1] % 16 != 0
    assert models.load("probe_stride").calibration.shape[-1] % 8 != 0


def test_a_dead_input_is_seen() -> None:
    """The check itself: a network that drops one of four channels has that channel's bytes dead."""
    graph = GraphBuilder("dead")
    weights = np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1)
    weights[2] = 0
    graph.convolution("output", "input", weights, np.ones(4, np.float32))
    model = graph.finish("input", (4, 3, 3), {"output": (4, 3, 3)})
    calibration = np.random.default_rng(0).uniform(-1.8, 2.0, (4, 4, 3, 3)).astype(np.float32)
    qdq = quantise(model, calibration, power_of_two, source_grid=PROBE_GRID)
    sample = np.random.default_rng(1).integers(-128, 128, (4, 3, 3)).astype(np.int8)
    assert dead_input_bytes(qdq, PROBE_GRID, sample) == 9


def test_entropy_of_known_data() -> None:
    assert entropy_bits(np.zeros(100, np.int8)) == 0
    assert entropy_bits(np.arange(-128, 128).astype(np.int8)) == pytest.approx(8)
    assert entropy_bits(np.array([1, 1, 2, 2], np.int8)) == pytest.approx(1)


@pytest.mark.parametrize("scale", [1.0, 0.013, 3e-7, 0.25, 117.3])
def test_scales_are_rounded_up_to_their_grid(scale: float) -> None:
    assert scale <= power_of_two(scale) < 2 * scale
    assert np.log2(power_of_two(scale)) % 1 == 0
    coarse = eleven_bits(scale)
    assert scale <= coarse <= scale * (1 + 2**-10)
    # The last bits of a float kernel do not reach the file (away from a grid point).
    assert scale in (1.0, 0.25) or eleven_bits(scale * (1 + 1e-7)) == coarse

"""The oracles of suites/sparse on builds fail on what they shall catch (SPARSE-01, -02, -03, -06, -07).

The suite's own test functions run here on doctored logs of RKNN-Toolkit2.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from sparse import real_logs
from sparse.suite_under_test import board, suite

from pytest_rknpu.errors import ConformanceFailure, HarnessError, ToolkitError, Waived
from pytest_rknpu.models.recipes import sparse_probes
from pytest_rknpu.sparsity import Mode, prune_onnx, sparsity_of
from pytest_rknpu.sparsity.engagement import Ratio, Shown
from pytest_rknpu.sparsity.layers import Graph
from pytest_rknpu.toolchain import Plan
from pytest_rknpu.verdict import ItemRecord

Floats = NDArray[np.float32]
TOOLKIT = "2.5.0"
ENGAGEMENT, REFUSAL, SIZES = (suite(name) for name in ("engagement", "refusal", "sizes"))


@pytest.fixture
def record() -> ItemRecord:
    return ItemRecord("suites/sparse", ("SPARSE-01",), 0)


def says(name: str, *replacements: tuple[str, str], **ratios: str) -> Callable[..., Plan]:
    """A compiler whose log is the real one called ``name``, doctored."""
    return lambda onnx, calibration, *, sparse_infer=True: real_logs.plan_of(name, *replacements, **ratios)


# SPARSE-01


def run_01(soc: str, mode: Mode, plan_of: Callable[..., Plan], record: ItemRecord) -> None:
    ENGAGEMENT.test_pruned_layers_run_sparse(board(soc), plan_of, TOOLKIT, record, mode)


def test_real_logs_pass_and_are_written_down(record: ItemRecord) -> None:
    run_01("rk3576", Mode.INPUT_THEN_OUTPUT, says("aligned2-rk3576"), record)
    written = {m.name: m.value for m in record.measurements}
    assert written["SparseRatio of large"] == "75%"
    assert written["SparseRatio of stem"] == "0%"
    assert "stem is outside the guide's limits: 3 input channels are no multiple of 32" in record.notes


def test_the_known_deviation_is_waived_with_its_reason(record: ItemRecord) -> None:
    with pytest.raises(
        Waived, match=r"square, pointwise, large, linear: .*SparseRatio 0%, not 50%\(IC\)\. Known: it"
    ):
        run_01("rv1126b", Mode.INPUT, says("aligned0-rv1126b"), record)


@pytest.mark.parametrize(
    ("mode", "compiler"),
    [
        (Mode.INPUT_THEN_OUTPUT, says("aligned2-rk3576", ("75%", "0% "))),  # nothing runs sparse
        (Mode.INPUT_THEN_OUTPUT, says("aligned2-rk3576", ("75%", "50%(OC)"))),  # half of it
        (Mode.INPUT, says("aligned0-rk3576", ("50%(IC)", "50%(OC)"))),  # the other direction
        (Mode.INPUT, says("aligned0-rk3576", large="0%")),  # one layer does not
        (Mode.INPUT, says("aligned0-rk3576", linear="75%")),  # one does more
    ],
)
def test_a_compiler_that_does_another_thing_fails(
    record: ItemRecord, mode: Mode, compiler: Callable[..., Plan]
) -> None:
    with pytest.raises(ConformanceFailure, match="SparseRatio"):
        run_01("rk3576", mode, compiler, record)


def test_a_deviation_that_is_gone_is_noticed(record: ItemRecord) -> None:
    """The table would hide the next one."""
    with pytest.raises(HarnessError, match=r"correct sparsity/engagement\.py"):
        run_01("rv1126b", Mode.INPUT, says("aligned0-rk3576"), record)


def test_weights_that_were_never_pruned_are_noticed(
    record: ItemRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of a dense model would otherwise be judged as one of a pruned model."""
    monkeypatch.setattr(ENGAGEMENT, "prune_onnx", lambda onnx, mode: (onnx, ()))
    with pytest.raises(HarnessError, match="was to hold 16:4, it holds none"):
        run_01("rk3576", Mode.INPUT_THEN_OUTPUT, says("dense-rk3576"), record)


# SPARSE-02


def run_02(soc: str, plan_of: Callable[..., Plan], record: ItemRecord) -> None:
    ENGAGEMENT.test_layers_outside_the_limits_stay_dense(board(soc), plan_of, TOOLKIT, record, Mode.OUTPUT)


def test_layers_that_go_beyond_the_guide_are_waived_and_named(record: ItemRecord) -> None:
    with pytest.raises(Waived, match=r"outputs_48 \(48 output channels are no multiple of 32\), inputs_48"):
        run_02("rk3576", says("beyond1-rk3576"), record)
    assert "two_groups is outside the guide's limits: it has 2 groups" in record.notes


@pytest.mark.parametrize("layer", ["depthwise", "transposed", "outputs_36", "logits"])
def test_a_layer_that_must_not_run_sparse_fails(record: ItemRecord, layer: str) -> None:
    with pytest.raises(ConformanceFailure, match=rf"{layer} \("):
        run_02("rk3576", says("beyond1-rk3576", **{layer: "50%(OC)"}), record)


def test_groups_that_run_sparse_fail(record: ItemRecord) -> None:
    """The compiler makes a layer of each group."""
    both = {f"two_groups_group_{number}": "50%(OC)" for number in (0, 1)}
    with pytest.raises(ConformanceFailure, match=r"two_groups \(it has 2 groups\)"):
        run_02("rk3576", says("beyond1-rk3576", **both), record)


@pytest.mark.parametrize(
    ("test", "mode"),
    [
        ("test_linear_layers_behind_flatten_run_sparse", Mode.OUTPUT),
        ("test_float16_layers_stay_dense", Mode.INPUT),
        ("test_a_trained_model_outside_the_limits_stays_dense", None),
    ],
)
def test_every_network_is_judged(
    record: ItemRecord, monkeypatch: pytest.MonkeyPatch, test: str, mode: Mode | None
) -> None:
    """Each with the ratios that 2.5.0 gave it, and with one layer that does another thing."""
    network = {
        "test_linear_layers_behind_flatten_run_sparse": "flat1",
        "test_float16_layers_stay_dense": "half0",
        "test_a_trained_model_outside_the_limits_stays_dense": "unaligned",
    }[test]
    said = real_logs.observed()["2.5.0"]["rk3576"][network]
    data_type = "FLOAT16" if network.startswith("half") else "INT8"

    def judge(ratios: dict[str, str]) -> None:
        def shown_by(content: bytes, rows: object) -> list[Shown]:
            graph = Graph(content)
            return [
                Shown(layer, sparsity_of(graph.weights(layer)).kind, data_type, Ratio(ratios[layer.name]))
                for layer in graph.layers()
            ]

        monkeypatch.setattr(ENGAGEMENT, "shown_by", shown_by)
        nothing = SimpleNamespace(layers=())
        arguments = (board("rk3576"), lambda *_: nothing, TOOLKIT, ItemRecord("", (), 0))
        getattr(ENGAGEMENT, test)(*arguments, *([] if mode is None else [mode]))

    with contextlib.suppress(Waived):
        judge(said)
    victim = "linear" if "linear" in said else next(iter(said))
    other = "0%" if said[victim] != "0%" else "50%(OC)"
    with pytest.raises(ConformanceFailure, match=victim):
        judge({**said, victim: other})


# SPARSE-03


def run_03(soc: str, plan_of: Callable[..., Plan], record: ItemRecord) -> None:
    REFUSAL.test_sparse_inference_is_refused_where_there_is_none(board(soc), plan_of, TOOLKIT, record)


def refuses(message: str) -> Callable[..., Plan]:
    def plan(onnx: bytes, calibration: Floats) -> Plan:
        raise ToolkitError(message)

    return plan


def test_the_refusal_is_clear(record: ItemRecord) -> None:
    message = (
        "failed in config (ValueError: rk3566 does not support sparse inference, ignore this parameter!)"
    )
    run_03("rk3566", refuses(message), record)
    assert record.notes == [message]


@pytest.mark.parametrize(
    "message",
    [
        "failed in build (returned -1): rk3566 does not support sparse inference",  # too late
        "failed in config (ValueError: Invalid target_platform 'rk3566'!)",
        "died in config (SIGABRT)",
        "failed in config (ValueError: rk3568 does not support sparse inference)",
    ],
)
def test_another_failure_is_no_refusal(record: ItemRecord, message: str) -> None:
    with pytest.raises(ConformanceFailure, match="the refusal does not say"):
        run_03("rk3566", refuses(message), record)


def test_no_refusal_fails_or_is_known(record: ItemRecord) -> None:
    with pytest.raises(ConformanceFailure, match="builds with sparse_infer=True for rk3566, which has none"):
        run_03("rk3566", says("dense-rk3576"), record)
    with pytest.raises(Waived, match="it ignores the option there"):
        run_03("rv1106b", says("dense-rk3576"), record)


def test_a_soc_with_sparse_inference_has_nothing_to_refuse(record: ItemRecord) -> None:
    with pytest.raises(pytest.skip.Exception, match="rk3576 has sparse inference"):
        run_03("rk3576", says("dense-rk3576"), record)


# SPARSE-06: the log


def run_06(
    plan_of: Callable[..., Plan], record: ItemRecord, weights: Callable[[bytes], bytes] = bytes
) -> None:
    ENGAGEMENT.test_dense_weights_stay_dense(board("rk3576"), plan_of, TOOLKIT, record, weights)


def test_dense_weights_that_are_said_to_be_sparse_fail(record: ItemRecord) -> None:
    with pytest.raises(ConformanceFailure, match=r"large: weights none, int8: SparseRatio 50%\(IC\), not 0%"):
        run_06(says("dense-rk3576", large="50%(IC)"), record)


def test_almost_pruned_weights_hold_no_pattern(record: ItemRecord) -> None:
    for mode in ENGAGEMENT.PATTERNS:
        run_06(says("dense-rk3576"), ItemRecord("", (), 0), ENGAGEMENT.almost(mode))
    with pytest.raises(ConformanceFailure, match="large"):
        run_06(says("aligned2-rk3576"), record, ENGAGEMENT.almost(Mode.INPUT_THEN_OUTPUT))


def test_pruned_weights_are_no_dense_ones(record: ItemRecord) -> None:
    def pruned(onnx: bytes) -> bytes:
        return prune_onnx(onnx, Mode.INPUT)[0]

    with pytest.raises(HarnessError, match="was to hold no pattern, it holds 4:2 along input channels"):
        run_06(says("aligned0-rk3576"), record, pruned)


# SPARSE-07


def run_07(
    sparse: Callable[..., Plan], record: ItemRecord, soc: str = "rk3576", mode: Mode = Mode.INPUT
) -> None:
    def plan_of(onnx: bytes, calibration: Floats, *, sparse_infer: bool = True) -> Plan:
        return sparse(onnx, calibration) if sparse_infer else real_logs.plan_of("dense-rk3576")

    SIZES.test_sparse_weights_are_smaller_and_not_slower(board(soc), plan_of, TOOLKIT, record, mode)


def test_real_sizes_pass_and_are_measured(record: ItemRecord) -> None:
    run_07(says("aligned0-rk3576"), record)
    figures = {m.name: m.value for m in record.measurements}
    assert 0.6 < figures["sparse weights"] / figures["dense weights"] < 0.9
    assert 0.1 < figures["sparse predicted cycles"] / figures["dense predicted cycles"] < 0.6


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "Total Weight Memory Size: 521.625KB",
            "Total Weight Memory Size: 657.938KB",
            "weights take 657.938KB",
        ),
        ("-274/36864/36864", "-274/99999/99999", "the compiler predicts .* cycles sparse"),
    ],
)
def test_sparse_weights_that_save_nothing_fail(record: ItemRecord, old: str, new: str, words: str) -> None:
    with pytest.raises(ConformanceFailure, match=words):
        run_07(says("aligned0-rk3576", (old, new)), record)


def test_where_nothing_engages_nothing_is_saved(record: ItemRecord) -> None:
    with pytest.raises(Waived, match="builds the layer dense all the same"):
        run_07(says("aligned0-rv1126b"), record, "rv1126b")
    with pytest.raises(ConformanceFailure, match="SparseRatio 0%"):
        run_07(says("dense-rk3576"), ItemRecord("", (), 0))


def test_small_models_may_grow_but_say_so(record: ItemRecord) -> None:
    def larger(onnx: bytes, calibration: Floats, *, sparse_infer: bool = True) -> Plan:
        size = ("Total Weight Memory Size: 521.625KB", "Total Weight Memory Size: 700KB")
        return real_logs.plan_of("aligned0-rk3576", *([size] if sparse_infer else []))

    SIZES.test_small_sparse_models_are_not_slower(larger, record, "digits_aligned_input")
    assert "small layers may grow" in record.notes[0]


def test_small_models_must_not_become_slower(record: ItemRecord) -> None:
    def slower(onnx: bytes, calibration: Floats, *, sparse_infer: bool = True) -> Plan:
        return real_logs.plan_of("dense-rk3576" if sparse_infer else "aligned0-rk3576")

    with pytest.raises(ConformanceFailure, match="the compiler predicts 98584 cycles sparse, 43588 dense"):
        SIZES.test_small_sparse_models_are_not_slower(slower, record, "digits_aligned_input")


def test_the_probes_are_the_same_everywhere() -> None:
    """Logs are stored for exactly these networks."""
    assert sparse_probes.aligned().onnx == sparse_probes.aligned().onnx
    assert sparse_probes.beyond().calibration.shape == (4, 3, 16, 16)

"""Pruning applied to ONNX files: which layers, why not the others, and what is left untouched."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_rknpu import models
from pytest_rknpu.errors import ConfigurationError, ModelError
from pytest_rknpu.models.recipes import sparse_probes
from pytest_rknpu.sparsity import INFERENCE, Kind, Mode, Selection, patterns, prune_all, prune_onnx, reasons
from pytest_rknpu.sparsity.layers import Graph

ALIGNED, BEYOND = sparse_probes.aligned(), sparse_probes.beyond()


def applied(content: bytes, mode: Mode, selection: Selection | None = None) -> dict[str, tuple[Kind, str]]:
    _, reports = prune_onnx(content, mode, selection or Selection())
    return {report.layer.name: (report.applied, "; ".join(report.reasons)) for report in reports}


def test_layers_are_pruned_and_the_others_named() -> None:
    few = "3 input channels are no more than 32"
    none = "10 output channels are no more than 32"
    assert applied(ALIGNED.onnx, Mode.INPUT) == {
        "stem": (Kind.NONE, few),
        **dict.fromkeys(("square", "pointwise", "large", "linear", "logits"), (Kind.INPUT, "")),
    }
    assert applied(ALIGNED.onnx, Mode.OUTPUT_THEN_INPUT) == {
        "stem": (Kind.OUTPUT, few),
        **dict.fromkeys(("square", "pointwise", "large", "linear"), (Kind.GRID, "")),
        "logits": (Kind.INPUT, none),
    }


def test_the_report_agrees_with_the_file() -> None:
    pruned, reports = prune_onnx(ALIGNED.onnx, Mode.INPUT_THEN_OUTPUT)
    held = patterns(pruned)
    for report in reports:
        assert held[report.layer.name] == report.after
        if report.applied is not Kind.NONE:
            assert report.after.kind is report.applied
            assert 0.25 <= report.kept < 1.0
    assert held["large"].zeros == 0.75


def test_nothing_else_changes() -> None:
    """The graph and the biases; the input bytes stay as they are."""
    before = bytes(ALIGNED.onnx)
    pruned, _ = prune_onnx(ALIGNED.onnx, Mode.INPUT)
    assert before == ALIGNED.onnx
    old, new = onnx.load_model_from_string(before).graph, onnx.load_model_from_string(pruned).graph
    assert old.node == new.node
    changed = {a.name for a, b in zip(old.initializer, new.initializer, strict=True) if a != b}
    assert changed == {f"{layer}.weight" for layer in ("square", "pointwise", "large", "linear", "logits")}
    onnxruntime.InferenceSession(pruned, providers=["CPUExecutionProvider"])


def test_groups_types_and_dimensions_are_left_out() -> None:
    found = applied(BEYOND.onnx, Mode.INPUT)
    assert found["two_groups"] == (Kind.NONE, "it has 2 groups")
    assert found["depthwise"] == (Kind.NONE, "it has 64 groups")
    whitelist = "is not in the whitelist (Conv2d, Linear)"
    assert found["transposed"] == (Kind.NONE, f"ConvTranspose2d {whitelist}")
    assert found["one_dimension"] == (Kind.NONE, f"Conv1d {whitelist}")
    assert found["inputs_36"] == (Kind.INPUT, "")


def test_limits_of_sparse_inference_have_reasons() -> None:
    found = {layer.name: reasons(layer, INFERENCE) for layer in Graph(BEYOND.onnx).layers()}
    assert all(found.values())
    assert found["outputs_48"] == ["48 output channels are no multiple of 32"]
    assert found["two_groups"] == ["it has 2 groups"]
    assert not any(
        reasons(layer, INFERENCE)
        for layer in Graph(ALIGNED.onnx).layers()
        if layer.name not in ("stem", "logits")
    )


def test_everything_is_pruned_where_limits_do_not_matter() -> None:
    held = patterns(prune_all(BEYOND.onnx, Mode.INPUT_THEN_OUTPUT))
    assert held["two_groups"].kind is Kind.GRID
    assert held["transposed"].kind is Kind.GRID
    assert held["one_dimension"].kind is Kind.GRID
    # One input channel a group: nothing can go along it.
    assert held["depthwise"].kinds == {Kind.OUTPUT}


@pytest.mark.parametrize(
    ("selection", "pruned"),
    [
        (Selection(allowed=("square", "linear")), {"square", "linear"}),
        (Selection(disallowed=("large", "logits")), {"square", "pointwise", "linear"}),
        (Selection(allowed=("square", "large"), disallowed=("large",)), {"square"}),
        (Selection(whitelist=("Linear",)), {"linear", "logits"}),
        (Selection(whitelist=()), set()),
        (Selection(allowed=()), set()),
    ],
)
def test_selection(selection: Selection, pruned: set[str]) -> None:
    found = applied(ALIGNED.onnx, Mode.INPUT, selection)
    assert {name for name, (kind, _) in found.items() if kind is not Kind.NONE} == pruned


@pytest.mark.parametrize("selection", [Selection(allowed=("sqare",)), Selection(disallowed=("sqare",))])
def test_a_misspelt_layer_is_refused(selection: Selection) -> None:
    with pytest.raises(ConfigurationError, match=r"no layer 'sqare'.*did you mean 'square'"):
        prune_onnx(ALIGNED.onnx, Mode.INPUT, selection)


def linear_model(
    operator: str, stored: np.ndarray, *, constant_node: bool = False, **attributes: int
) -> bytes:
    weights = numpy_helper.from_array(stored, "w")
    nodes = [helper.make_node(operator, ["x", "w"], ["y"], **attributes)]
    if constant_node:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=weights))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 40])],
        [] if constant_node else [weights],
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())


@pytest.mark.parametrize("constant_node", [False, True])
@pytest.mark.parametrize(
    ("operator", "transposed", "attributes"),
    [("MatMul", True, {}), ("Gemm", True, {}), ("Gemm", False, {"transB": 1})],
)
def test_linear_weights_are_turned_the_right_way(
    operator: str, transposed: bool, attributes: dict[str, int], constant_node: bool
) -> None:
    """(Cin, Cout) in MatMul and in Gemm without transB: the axes must not be mistaken for one another."""
    weights = np.random.default_rng(4).normal(size=(40, 64)).astype(np.float32)
    stored = np.ascontiguousarray(weights.T if transposed else weights)
    content = linear_model(operator, stored, constant_node=constant_node, **attributes)
    pruned, (report,) = prune_onnx(content, Mode.OUTPUT)
    assert (report.layer.type, report.layer.shape) == ("Linear", (40, 64))
    graph = Graph(pruned)
    (layer,) = graph.layers()
    found = graph.weights(layer)
    kept = np.abs(weights).reshape(10, 4, 64).argsort(axis=1)[:, 2:]
    expected = np.zeros_like(weights).reshape(10, 4, 64)
    np.put_along_axis(expected, kept, np.take_along_axis(weights.reshape(10, 4, 64), kept, 1), 1)
    assert np.array_equal(found, expected.reshape(40, 64))


def test_shared_weights_are_left_alone() -> None:
    model = onnx.load_model_from_string(linear_model("MatMul", np.ones((64, 40), np.float32)))
    model.graph.node.append(helper.make_node("MatMul", ["x", "w"], ["z"], name="second"))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 40]))
    content = bytes(model.SerializeToString())
    pruned, reports = prune_onnx(content, Mode.INPUT)
    assert [report.reasons for report in reports] == [("its weights 'w' are read 2 times",)] * 2
    assert patterns(pruned) == patterns(content)


def test_quantised_weights_are_left_alone_but_seen() -> None:
    qdq = models.load("digits_aligned_grid").qdq_onnx
    content, reports = prune_onnx(qdq, Mode.INPUT)
    assert all(report.reasons == ("its weights are int8: prune before quantisation",) for report in reports)
    assert onnx.load_model_from_string(content) == onnx.load_model_from_string(qdq)
    held = patterns(qdq)
    assert held["tall"].kind is held["pointwise"].kind is Kind.GRID


def test_half_precision_is_pruned_in_its_own_type() -> None:
    stored = np.random.default_rng(5).normal(size=(64, 40)).astype(np.float16)
    model = onnx.load_model_from_string(linear_model("MatMul", stored))
    pruned, (report,) = prune_onnx(bytes(model.SerializeToString()), Mode.INPUT)
    assert report.applied is Kind.INPUT
    assert numpy_helper.to_array(onnx.load_model_from_string(pruned).graph.initializer[0]).dtype == np.float16


def test_weights_outside_the_file_are_refused() -> None:
    model = onnx.load_model_from_string(linear_model("MatMul", np.ones((64, 40), np.float32)))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    with pytest.raises(ModelError, match="'w' lie outside the ONNX file"):
        prune_onnx(bytes(model.SerializeToString()), Mode.INPUT)


def test_numbers_that_are_none_name_their_layer() -> None:
    content = linear_model("MatMul", np.full((64, 40), np.inf, np.float32))
    with pytest.raises(ModelError, match="layer 'y': 2560 of 2560 weights are not finite"):
        prune_onnx(content, Mode.INPUT)


@pytest.mark.parametrize("content", [b"", b"not onnx", b"\x08\x07"])
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ModelError):
        prune_onnx(content, Mode.INPUT)

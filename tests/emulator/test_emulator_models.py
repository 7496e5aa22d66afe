"""Packed models: layer by layer on the emulated board equals the whole graph in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from emulated_board import Board, channels_first, zero_copy
from onnx import TensorProto, helper
from qdq_models import ALL, Graph, chain, one_convolution

from pytest_rknpu.agent.abi import TensorFormat, TensorType
from pytest_rknpu.emulator import pack
from pytest_rknpu.emulator.container import decode
from pytest_rknpu.errors import ConfigurationError, ModelError


def whole_graph(
    model: bytes, real: npt.NDArray[np.float32], *, optimised: bool
) -> list[npt.NDArray[np.float32]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": real}))


def on_board(model: bytes, soc: str, real: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
    """All outputs as float32 by the copying API, the input given as real values."""
    board = Board(soc)
    context = board.init(pack(model, soc))
    packed = decode(pack(model, soc))
    board.set_input(context, real.tobytes(), TensorType.RKNN_TENSOR_FLOAT32)
    board.check("run", context, 0)
    outputs = board.outputs(context, len(packed.outputs), want_float=True)
    shapes = [packed.tensors[port.tensor].shape for port in packed.outputs]
    return [
        np.frombuffer(data, np.float32).reshape(shape) for data, shape in zip(outputs, shapes, strict=True)
    ]


def real_input(model: bytes, seed: int) -> npt.NDArray[np.float32]:
    shape = decode(pack(model, "rk3588")).tensors[0].shape
    return np.random.default_rng(seed).uniform(-5, 5, shape).astype(np.float32)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("soc", ["rk3588", "rk3566"])
def test_layers_equal_the_whole_graph(name: str, soc: str) -> None:
    model = ALL[name]()
    for seed in range(3):
        real = real_input(model, seed)
        for actual, expected in zip(
            on_board(model, soc, real), whole_graph(model, real, optimised=False), strict=True
        ):
            assert len(np.unique(expected)) > 4, "a constant output compares nothing"
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", ALL)
def test_layers_are_within_a_step_of_the_fused_integer_kernels(name: str) -> None:
    model = ALL[name]()
    real = real_input(model, 7)
    packed = decode(pack(model, "rk3588"))
    pairs = zip(on_board(model, "rk3588", real), whole_graph(model, real, optimised=True), strict=True)
    for port, (actual, expected) in zip(packed.outputs, pairs, strict=True):
        assert np.abs(actual - expected).max() <= 1.001 * packed.tensors[port.tensor].scale


def test_native_zero_copy_on_the_mini_runtime_equals_the_whole_graph() -> None:
    model = chain()
    packed = decode(pack(model, "rv1106"))
    io = zero_copy(Board("rv1106"), pack(model, "rv1106"))
    stored = np.random.default_rng(3).integers(-128, 128, (1, 16, 16, 16)).astype(np.int8)
    io.push(stored.transpose(0, 2, 3, 1).reshape(-1).view(np.uint8))  # 16 channels are one block
    io.run()
    actual = channels_first(io.pull(), io.board.native_output(io.context), 16)
    source, result = packed.tensors[packed.inputs[0].tensor], packed.tensors[packed.outputs[0].tensor]
    real = (stored.astype(np.float32) - source.zero_point) * np.float32(source.scale)
    (expected,) = whole_graph(model, real, optimised=False)
    np.testing.assert_array_equal(actual, np.rint(expected / result.scale) + result.zero_point)


def test_unsigned_activations_are_stored_as_int8() -> None:
    real = real_input(chain(), 5)
    (signed,) = on_board(chain(), "rk3588", real)
    (unsigned,) = on_board(chain(unsigned=True), "rk3588", real)
    np.testing.assert_array_equal(signed, unsigned)


def test_a_relu_belongs_to_its_convolution() -> None:
    packed = decode(pack(chain(), "rk3588"))
    assert [layer.operators for layer in packed.layers] == ["Conv+Relu", "Conv", "Conv", "Add", "Conv"]


def test_the_internal_buffer_is_reused() -> None:
    packed = decode(pack(chain(), "rk3588"))
    assert packed.internal_size < sum(tensor.size for tensor in packed.tensors)


def test_equal_models_give_equal_bytes() -> None:
    assert pack(chain(), "rk3588") == pack(chain(), "RK3588S")
    assert pack(chain(), "rk3588") != pack(chain(), "rk3576")


def test_layers_that_no_output_needs_are_left_out() -> None:
    graph = Graph((1, 8, 8, 8))
    graph.conv("a", "x", 8)
    graph.conv("unused", "a", 64)
    packed = decode(pack(graph.finish(("a", (1, 8, 8, 8))), "rk3588"))
    assert [layer.operators for layer in packed.layers] == ["Conv"]
    assert packed.weight_size < 64 * 8 * 9


def test_removed_weights_keep_their_place() -> None:
    whole, slave = decode(pack(chain(), "rk3588")), decode(pack(chain(), "rk3588", remove_weight=True))
    assert slave.weights is None
    assert slave.weight_size == whole.weight_size
    assert slave.layers == whole.layers


def unquantised_output() -> bytes:
    graph = Graph((1, 8, 8, 8))
    graph.nodes.append(helper.make_node("Relu", [graph.dequantised("x")], ["y"]))
    shown = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 8, 8))
    return _model(graph, [shown])


def unknown_operator() -> bytes:
    graph = Graph((1, 8, 8, 8))
    graph.operator("Erf", "a", ["x"])
    return graph.finish(("a", (1, 8, 8, 8)))


def unquantised_input() -> bytes:
    graph = Graph((1, 8, 8, 8))
    graph.nodes[0] = helper.make_node("Relu", ["x"], ["x.relu"])
    graph.nodes.append(helper.make_node("QuantizeLinear", ["x.relu", "x.scale", "x.zero"], ["x.q"]))
    return graph.finish(("x", (1, 8, 8, 8)))


def open_batch() -> bytes:
    graph = Graph((1, 8, 8, 8))
    graph.conv("a", "x", 8)
    graph.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 8, 8, 8))]
    return graph.finish(("a", ("N", 8, 8, 8)))  # type: ignore[arg-type]


def sixteen_bits() -> bytes:
    graph = Graph((1, 8, 8, 8))
    graph.constants[1] = onnx.numpy_helper.from_array(np.array(0, np.int16), "x.zero")
    model = onnx.load_model_from_string(graph.finish(("x", (1, 8, 8, 8))))
    model.opset_import[0].version = 21
    model.ir_version = 10
    return bytes(model.SerializeToString())


def other_grid() -> bytes:
    graph = Graph((1, 8, 8, 8))
    graph.conv("a", "x", 8)
    graph.constant("other", 0.5)
    reading = next(
        node for node in graph.nodes if node.op_type == "DequantizeLinear" and node.input[0] == "x.q"
    )
    reading.input[1] = "other"
    return graph.finish(("a", (1, 8, 8, 8)))


def _model(graph: Graph, shown: list[onnx.ValueInfoProto]) -> bytes:
    made = helper.make_graph(graph.nodes, "test", graph.inputs, shown, graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"", "empty"),
        (lambda: b"\x00\x01garbage", "not a sound ONNX model"),
        (lambda: chain()[: len(chain()) // 2], "not a sound ONNX model"),
        (unquantised_output, "output 'y' is not quantised"),
        (unknown_operator, "Erf"),
        (unquantised_input, "input 'x' is read by Relu"),
        (open_batch, "fixed sizes"),
        (sixteen_bits, "int16"),
        (other_grid, "another scale"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_packed_is_named(make: Callable[[], bytes], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        pack(make(), "rk3588")


def test_unknown_soc_and_long_custom_string() -> None:
    with pytest.raises(ConfigurationError, match="rk3599"):
        pack(one_convolution(), "rk3599")
    with pytest.raises(ModelError, match="custom_string"):
        pack(one_convolution(), "rk3588", custom_string="x" * 1024)


def test_integer_graph_input_and_output() -> None:
    """A graph whose ends are int8 already."""
    scale, zero = helper.make_tensor("s", 1, [], [0.5]), helper.make_tensor("z", TensorProto.INT8, [], [3])
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"]),
        helper.make_node("Relu", ["f"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.INT8, [1, 4, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "integers", ends[:1], ends[1:], [scale, zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    board = Board()
    context = board.init(pack(model.SerializeToString(), "rk3588"))
    stored = np.arange(-8, 8, dtype=np.int8)
    board.set_input(context, stored.tobytes(), fmt=TensorFormat.RKNN_TENSOR_UNDEFINED)
    board.check("run", context, 0)
    assert board.outputs(context) == [np.maximum(stored, 3).tobytes()]

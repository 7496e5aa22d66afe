"""A [[model]] table turned into what the toolkit is asked for, and into what boards load."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_models.project import pictures, run_torch, two_inputs

from pytest_rknpu import models
from pytest_rknpu.errors import ConfigurationError, ModelError
from pytest_rknpu.inventory.model_files import read_models
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.session.user_models import UserModel, artifact_of
from pytest_rknpu.session.user_sources import cut_onnx

DIGITS = models.load("digits_cnn")
Make = Callable[..., UserModel]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A model by its keys; its files are in tmp_path."""
    (tmp_path / "digits.onnx").write_bytes(DIGITS.float_onnx)
    (tmp_path / "qdq.onnx").write_bytes(DIGITS.qdq_onnx)
    np.savez(tmp_path / "data.npz", x=DIGITS.calibration)
    np.savez(tmp_path / "pictures.npz", x=pictures(DIGITS.calibration))

    def build(**keys: Any) -> UserModel:
        (table,), problems = read_models(tmp_path / "boards.toml", [{"name": "mine", **keys}])
        assert not problems
        return UserModel(table)

    return build


def board(**keys: Any) -> Board:
    return Board.model_validate({"name": "lab", "soc": "rk3588", "runtime": "emulator", **keys})


def rknn(*platforms: str) -> bytes:
    text = json.dumps({"target_platform": list(platforms), "version": "2.5.0"}).encode()
    head = b"RKNN".ljust(8, b"\0") + struct.pack("<QQ", 6, 16)
    return head.ljust(64, b"\0") + bytes(16) + struct.pack("<Q", len(text)) + text


def test_the_toolkit_is_asked_for_what_the_table_says(make: Make) -> None:
    model = make(
        path="digits.onnx",
        inputs=[{"shape": [1, 3, 16, 16], "layout": "nhwc"}],
        mean=[128.0] * 3,
        std=[64.0] * 3,
        calibration="pictures.npz",
        sparse=1,
    )
    keywords = model.options("rk3576").config_keywords()
    assert keywords["mean_values"] == [[128.0] * 3]
    assert keywords["std_values"] == [[64.0] * 3]
    assert keywords["quantized_dtype"] == "w8a8"
    assert keywords["sparse_infer"] is True
    assert "sparse_infer" not in model.options("rk3588").config_keywords()  # has no sparse inference
    assert "sparse_infer" not in model.options("rk3576", sparse_infer=False).config_keywords()
    (array,) = model.options("rk3588").calibration_arrays
    assert array.shape == (len(DIGITS.calibration), 3, 16, 16)
    np.testing.assert_allclose(model.normalised([array])[0], DIGITS.calibration, atol=1e-5)


def test_the_float_model_gets_what_comes_after_the_normalisation(make: Make) -> None:
    keys: dict[str, Any] = {"inputs": [{"shape": [1, 3, 16, 16], "layout": "nhwc"}]}
    model = make(path="digits.onnx", calibration="pictures.npz", mean=[128.0] * 3, std=[64.0] * 3, **keys)
    assert model.samples is not None
    outputs, computed_by = model.float_outputs(model.samples.first(4).inputs)
    assert computed_by == "ONNX Runtime, float32"
    expected = run_onnx(DIGITS.float_onnx, DIGITS.calibration[:4])[0]
    np.testing.assert_allclose(outputs[0], expected, atol=1e-3)


def test_swapped_channels_of_listed_pictures(make: Make, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"picture")
    (tmp_path / "list.txt").write_text("a.jpg\na.jpg\n")
    model = make(path="digits.onnx", calibration="list.txt", channel_order="bgr")
    options = model.options("rk3588")
    assert options.config_keywords()["quant_img_RGB2BGR"] is True
    assert options.calibration_files == ((tmp_path / "a.jpg",),) * 2
    assert options.quantises
    assert model.samples is None  # nothing here reads pictures


@pytest.mark.parametrize(
    ("dtype", "platform", "words"),
    [
        ("w8a16", "rk3588", "builds for rk3562 only, not for rk3588"),
        ("w4a16", "rk3562", "builds for rk3576, rv1126b only, not for rk3562"),
        ("float16", "rv1106", "does not build for rv1106"),
    ],
)
def test_data_types_that_a_soc_does_not_take_skip(make: Make, dtype: str, platform: str, words: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=words):
        make(path="digits.onnx", dtype=dtype, calibration="data.npz").options(platform)


def test_ready_files_are_checked_against_the_soc(make: Make, tmp_path: Path) -> None:
    (tmp_path / "ready.rknn").write_bytes(rknn("rk3588"))
    real = board(runtime="connected")
    assert artifact_of(real, make(rknn={"rk3588": "ready.rknn"})) == rknn("rk3588")
    with pytest.raises(ModelError, match=r'key "rknn": .*was built for rk3588, not for rk3576'):
        artifact_of(board(runtime="connected", soc="rk3576"), make(rknn={"rk3576": "ready.rknn"}))
    with pytest.raises(
        pytest.skip.Exception, match=r"has no .rknn file for rk3576 \(it has: rk3588\), and no path"
    ):
        artifact_of(board(runtime="connected", soc="rk3576"), make(rknn={"rk3588": "ready.rknn"}))
    (tmp_path / "ready.rknn").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r'\[\[model\]\] "mine", key "rknn": .*no .rknn model'):
        artifact_of(real, make(rknn={"rk3588": "ready.rknn"}))


def test_a_ready_file_has_no_float_model(make: Make, tmp_path: Path) -> None:
    (tmp_path / "ready.rknn").write_bytes(rknn("rk3588"))
    with pytest.raises(pytest.skip.Exception, match=r"a ready .rknn file has no float model"):
        make(rknn={"rk3588": "ready.rknn"}).float_outputs([DIGITS.calibration])


def test_an_emulated_board_takes_qdq_only(make: Make) -> None:
    assert artifact_of(board(), make(path="qdq.onnx", dtype="prequantised")).startswith(b"RKEM")
    with pytest.raises(pytest.skip.Exception, match="no QDQ ONNX graph"):
        artifact_of(board(), make(path="digits.onnx", calibration="data.npz"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.onnx", b"", "is empty"),
        ("bad.onnx", b"no model", "no ONNX file"),
        ("bad.onnx", DIGITS.float_onnx[:500], "truncated|not valid|no ONNX file"),
        ("bad.pt", b"no archive", "not what torch.jit.save writes"),
        ("bad.tflite", b"", "is empty"),
    ],
)
def test_bad_model_files(make: Make, tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    keys = {"inputs": [{"shape": [1, 3, 16, 16]}]} if name.endswith("pt") else {}
    with pytest.raises(ModelError, match=words):
        _ = make(path=name, **keys).source


def test_a_state_dict_is_no_torchscript(make: Make, tmp_path: Path) -> None:
    run_torch("torch.save({'weight': torch.zeros(3)}, sys.argv[1])", tmp_path / "state.pt")
    with pytest.raises(ModelError, match="a state dict or a pickled module has no graph"):
        _ = make(path="state.pt", inputs=[{"shape": [1, 3]}]).source


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (
            [{"shape": [1, 3, 8, 8]}],
            r"'input' has shape \[1, 3, 8, 8\] here, and \[1, 3, 16, 16\] in the graph",
        ),
        ([{"shape": [1, 3]}, {"shape": [1, 3]}], "has 2 entries, the graph has 1 inputs"),
    ],
)
def test_inputs_that_contradict_the_graph(make: Make, inputs: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        _ = make(path="digits.onnx", inputs=inputs).forms


def test_free_dimensions_need_inputs(make: Make, tmp_path: Path) -> None:
    import onnx

    model = onnx.load_model_from_string(DIGITS.float_onnx)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "free.onnx")
    with pytest.raises(ConfigurationError, match=r'key "inputs": missing; .*one sample of known size'):
        _ = make(path="free.onnx").forms
    assert make(path="free.onnx", inputs=[{"shape": [1, 3, 16, 16]}]).forms[0].name == "input"


def test_graphs_are_cut_where_the_toolkit_cuts_them(tmp_path: Path) -> None:
    two_inputs(tmp_path)
    content = (tmp_path / "two.onnx").read_bytes()
    assert cut_onnx(content, [], [], "mine") is content
    assert cut_onnx(content, ["a", "b"], ["y"], "mine") is content
    with np.load(tmp_path / "two.npz") as archive:
        from pytest_rknpu.models.execute import run_onnx_inputs

        (whole,) = run_onnx_inputs(content, [archive["a"], archive["b"]])
        (part,) = run_onnx_inputs(cut_onnx(content, ["a"], ["f"], "mine"), [archive["a"]])
    assert part.shape == whole.shape == (12, 4)
    with pytest.raises(ModelError, match=r'"mine": the graph cannot be cut'):
        cut_onnx(content, ["a"], ["nowhere"], "mine")

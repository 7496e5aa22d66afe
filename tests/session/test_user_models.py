"""A [[model]] table turned into what the toolkit is asked for, and into what boards load."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_models.project import pictures, run_torch, two_inputs

from pytest_rknpu import models, toolchain
from pytest_rknpu.errors import ModelError, UserModelError
from pytest_rknpu.inventory.model_files import read_models
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.session import Subject, UserModels, scores_of, subject_of
from pytest_rknpu.session.user_artifacts import artifact_of
from pytest_rknpu.session.user_graphs import cut_onnx
from pytest_rknpu.session.user_models import UserModel
from pytest_rknpu.toolchain import ToolkitStatus

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


def rknn(*platforms: str, shapes: Sequence[Sequence[int]] = ([1, 3, 16, 16],)) -> bytes:
    described: dict[str, Any] = {"target_platform": list(platforms), "version": "2.5.0"}
    described["input_num"] = len(shapes)
    described["graph"] = [
        {"left": "input", "left_tensor_id": number, "right_tensor_id": number}
        for number in range(len(shapes))
    ]
    described["norm_tensor"] = [
        {"tensor_id": number, "url": f"in{number}", "size": list(shape), "dtype": {"qnt_type": "int8"}}
        for number, shape in enumerate(shapes)
    ]
    text = json.dumps(described).encode()
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
    with pytest.raises(UserModelError, match=r'key "rknn": .*was built for rk3588, not for rk3576'):
        artifact_of(board(runtime="connected", soc="rk3576"), make(rknn={"rk3576": "ready.rknn"}))
    with pytest.raises(
        pytest.skip.Exception, match=r"has no .rknn file for rk3576 \(it has: rk3588\), and no path"
    ):
        artifact_of(board(runtime="connected", soc="rk3576"), make(rknn={"rk3588": "ready.rknn"}))
    (tmp_path / "ready.rknn").write_bytes(b"no model")
    with pytest.raises(UserModelError, match=r'\[\[model\]\] "mine", key "rknn": .*no .rknn model'):
        artifact_of(real, make(rknn={"rk3588": "ready.rknn"}))
    (tmp_path / "ready.rknn").write_bytes(rknn("rk9999", "rv1109"))  # nobody here knows the one
    with pytest.raises(UserModelError, match=r'key "rknn": .*was built for rk9999, rv1109, not for rk3588'):
        artifact_of(real, make(rknn={"rk3588": "ready.rknn"}))


@pytest.mark.parametrize("shapes", [[[1, 3, 8, 8]], [[1, 3, 16, 16], [1, 5]], [[1, 16, 16, 3]]])
def test_ready_files_take_what_the_model_takes(make: Make, tmp_path: Path, shapes: list[list[int]]) -> None:
    """Else the board, which is right, would fail beside the float model."""
    real, keys = board(runtime="connected"), {"path": "digits.onnx", "calibration": "data.npz"}
    (tmp_path / "ready.rknn").write_bytes(rknn("rk3588"))
    assert artifact_of(real, make(**keys, rknn={"rk3588": "ready.rknn"}))
    (tmp_path / "ready.rknn").write_bytes(rknn("rk3588", shapes=shapes))
    with pytest.raises(
        UserModelError, match=r'key "rknn": .*takes inputs of shape .*this table takes \[1, 3,'
    ):
        artifact_of(real, make(**keys, rknn={"rk3588": "ready.rknn"}))
    assert artifact_of(real, make(rknn={"rk3588": "ready.rknn"}))  # nobody says what it should take


def test_without_the_toolkit_nothing_is_built_and_the_proof_says_so(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = ToolkitStatus(None, "RKNN-Toolkit2 is not installed")
    monkeypatch.setattr(toolchain, "toolkit_status", lambda: missing)
    with pytest.raises(
        pytest.skip.Exception, match=r'"mine" is not built for rk3588: .*not installed; install it with: pip'
    ):
        artifact_of(board(runtime="connected"), make(path="digits.onnx", calibration="data.npz"))


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
    with pytest.raises(UserModelError, match=rf'^\[\[model\]\] "mine", key "path": .*({words})'):
        _ = make(path=name, **keys).source


def test_a_state_dict_is_no_torchscript(make: Make, tmp_path: Path) -> None:
    run_torch("torch.save({'weight': torch.zeros(3)}, sys.argv[1])", tmp_path / "state.pt")
    with pytest.raises(UserModelError, match="a state dict or a pickled module has no graph"):
        _ = make(path="state.pt", inputs=[{"shape": [1, 3]}]).source


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (
            [{"shape": [1, 3, 8, 8]}],
            r"'input' has shape \[1, 3, 8, 8\] here, and \[1, 3, 16, 16\] in the graph",
        ),
        ([{"shape": [1, 3]}, {"shape": [1, 3]}], "has 2 entries, the graph has 1 inputs"),
        (
            [{"name": "firs", "shape": [1, 16, 16, 16]}],
            r"the graph of .*digits.onnx has no tensor 'firs' \(did you mean \"first\"\?\)",
        ),
    ],
)
def test_inputs_that_contradict_the_graph(make: Make, inputs: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(UserModelError, match=rf'\[\[model\]\] "mine", key "inputs": .*{words}'):
        _ = make(path="digits.onnx", inputs=inputs).forms


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"path": "digits.onnx", "outputs": ["nowhere"]},
            "key \"outputs\": the graph of .* has no tensor 'nowhere'; its inputs: input",
        ),
        (
            {"path": "digits.onnx", "mean": [1.0], "std": [1.0]},
            'key "mean": has 1 numbers, the model\'s input has 3 channels',
        ),
        (
            {"path": "two.onnx", "mean": [1.0] * 3, "std": [1.0] * 3},
            'key "mean": only for models with one input, this one has 2',
        ),
        (
            {"path": "qdq.onnx", "calibration": "data.npz"},
            'key "dtype": is "w8a8", but the graph of .* is quantised already',
        ),
        ({"path": "qdq.onnx"}, 'key "dtype": is "float16", but the graph of .* is quantised already'),
        (
            {"path": "digits.onnx", "dtype": "prequantised"},
            'key "dtype": is "prequantised", but .* is a float graph',
        ),
    ],
)
def test_tables_that_contradict_the_graph(
    make: Make, tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    """Named here, with table and key, before the toolkit says it in its own words, or says nothing."""
    two_inputs(tmp_path)
    with pytest.raises(UserModelError, match=rf'^\[\[model\]\] "mine", {words}'):
        _ = make(**keys).forms


def test_weights_in_another_file_are_taken_in(make: Make, tmp_path: Path) -> None:
    """RKNN-Toolkit2 is given one file; without its weights it builds from garbage, and says nothing."""
    import onnx

    model = onnx.load_model_from_string(DIGITS.float_onnx)
    onnx.save(model, tmp_path / "out.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "out.onnx").stat().st_size < 10_000
    (loaded,) = make(path="out.onnx").float_outputs([DIGITS.calibration[:2]])[0]
    assert np.array_equal(loaded, run_onnx(DIGITS.float_onnx, DIGITS.calibration[:2])[0])
    (tmp_path / "w.bin").unlink()
    with pytest.raises(UserModelError, match=r'key "path": .*keeps weights in other files \(w\.bin\)'):
        make(path="out.onnx").float_outputs([DIGITS.calibration[:2]])


def test_free_dimensions_need_inputs(make: Make, tmp_path: Path) -> None:
    import onnx

    model = onnx.load_model_from_string(DIGITS.float_onnx)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "free.onnx")
    with pytest.raises(UserModelError, match=r'key "inputs": missing; .*one sample of known size'):
        _ = make(path="free.onnx").forms
    fixed = make(path="free.onnx", inputs=[{"shape": [1, 3, 16, 16]}])
    assert fixed.forms[0].name == "input"
    # The toolkit fixes free dimensions of inputs that are named to it, whether or not the table names them.
    assert fixed.source is not None
    assert fixed.source.keywords == {"inputs": ["input"], "input_size_list": [[1, 3, 16, 16]]}


def test_graphs_are_cut_where_the_toolkit_cuts_them(tmp_path: Path) -> None:
    two_inputs(tmp_path)
    content = (tmp_path / "two.onnx").read_bytes()
    assert cut_onnx(content, [], []) is content
    assert cut_onnx(content, ["a", "b"], ["y"]) is content
    with np.load(tmp_path / "two.npz") as archive:
        from pytest_rknpu.models.execute import run_onnx_inputs

        (whole,) = run_onnx_inputs(content, [archive["a"], archive["b"]])
        (part,) = run_onnx_inputs(cut_onnx(content, ["a"], ["f"]), [archive["a"]])
    assert part.shape == whole.shape == (12, 4)
    with pytest.raises(
        ModelError, match=r'the graph cannot be cut between .*\(keys "inputs" and "outputs"\)'
    ):
        cut_onnx(content, ["a"], ["nowhere"])


def scores(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def labelled(make: Make, tmp_path: Path) -> Subject:
    """A subject with the labels 0, 1, 2, 3."""
    np.savez(tmp_path / "labelled.npz", x=DIGITS.calibration[:4], labels=np.arange(4))
    keys: dict[str, Any] = {"path": "digits.onnx", "labelled": "labelled.npz", "top1_drop": 0.1}
    models_of = UserModels([make(**keys, per_soc={"rk3566": {"top1_drop": 0.2}}).table])
    assert subject_of("mine", models_of, "rk3566").top1_drop == 0.2
    return subject_of("mine", models_of, "rk3588")


@pytest.mark.parametrize("shape", [(4, 10), (4, 10, 1, 1), (4, 1, 10), (4, 1, 1, 10)])
def test_scores_may_have_places_of_one_pixel(labelled: Subject, shape: tuple[int, ...]) -> None:
    """Classifiers without a Flatten at their end are as good."""
    assert labelled.top1_drop == 0.1
    assert scores_of([scores(*shape)], labelled).shape == (4, 10)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((4, 5, 2), r"output 0 has shape \(4, 5, 2\); leave out top1_drop"),
        ((4,), "top1"),
        ((4, 1), "needs scores"),
        ((4, 3), "labels reach 3, output 0 has 3 classes, counted from 0"),
    ],
)
def test_what_is_no_classifier_is_the_owners_affair(
    labelled: Subject, shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(UserModelError, match=rf'^\[\[model\]\] "mine", key "labelled": .*{words}'):
        scores_of([scores(*shape)], labelled)

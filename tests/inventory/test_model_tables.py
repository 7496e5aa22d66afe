"""[[model]] tables: what is refused, with file, table and key; what is taken, with absolute paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.model_table import ModelTable
from pytest_rknpu.inventory.reference import plain_keys_table, updated
from pytest_rknpu.inventory.schema import load_boards

BOARD = '[[board]]\nname = "one"\nsoc = "rk3588"\nruntime = "emulator"\n'
ONNX = '[[model]]\nname = "mine"\npath = "net.onnx"\n'
SPARSE = 'calibration = "data.npz"\nlabelled = "labels.npz"\nsparse = 0\n'
FILES = (
    *(f"net.{suffix}" for suffix in ("onnx", "tflite", "pt", "pb", "prototxt", "caffemodel", "rknn", "txt")),
    *("data.npz", "data.npy", "labels.npz", "picture.jpg"),
)

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a boards.toml with a board and these models, beside files of every kind."""
    for name in FILES:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "list.txt").write_text("data.npy\npicture.jpg\n")

    def to(models: str) -> Path:
        file = tmp_path / "boards.toml"
        file.write_text(BOARD + models)
        return file

    return to


def refusal(file: Path) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load_boards(file)
    text = str(raised.value)
    assert text.startswith(f"{file}: ")
    assert "\n" not in text
    return text.removeprefix(f"{file}: ")


def test_a_full_table(write: Write) -> None:
    file = write(
        ONNX
        + 'inputs = [{ name = "input", shape = [1, 3, 224, 224], layout = "nhwc" }]\noutputs = ["prob"]\n'
        'mean = [123.675, 116, 103.53]\nstd = [58.395, 57.12, 57]\ncalibration = "data.npz"\n'
        'labelled = "labels.npz"\ndtype = "w8a8"\nsparse = 1\ntolerances = [{ cosine = 0.99, bias = 1 }]\n'
        'top1_drop = 0.01\nfloat_top1 = 0.7\ncpu_operators = 0\nnote = "x"\nrknn = { RK3588s = "net.rknn" }\n'
    )
    (model,) = load_boards(file).models
    folder = file.parent.absolute()
    assert model.path == str(folder / "net.onnx")
    assert model.calibration == str(folder / "data.npz")
    assert dict(model.rknn) == {"rk3588": str(folder / "net.rknn")}
    assert model.mean == (123.675, 116.0, 103.53)
    assert model.inputs[0].shape == (1, 3, 224, 224)
    assert (model.tolerances[0].cosine, model.tolerances[0].bias, model.tolerances[0].sqnr_db) == (
        0.99,
        1.0,
        None,
    )


def test_limits_of_one_soc_stand_in_place_of_the_models_own(write: Write) -> None:
    file = write(
        ONNX + 'calibration = "data.npz"\nlabelled = "labels.npz"\ntolerances = [{ cosine = 0.99 }]\n'
        "top1_drop = 0.01\ncpu_operators = 0\n"
        "per_soc = { RK3566 = { cpu_operators = 2, tolerances = [{ cosine = 0.9 }] } }\n"
    )
    (model,) = load_boards(file).models
    there, elsewhere = model.on("rk3566"), model.on("rk3588")
    assert (there.cpu_operators, there.tolerances[0].cosine, there.top1_drop) == (2, 0.9, 0.01)
    assert elsewhere is model


def test_blanks_split_the_lines_of_a_list(write: Write) -> None:
    file = write(ONNX + 'calibration = "bad.txt"\n')
    (file.parent / "bad.txt").write_text("da ta.npy\n")
    assert "da is neither .npy nor a picture (.jpg, .jpeg, .png, .bmp); lines are split at blanks" in refusal(
        file
    )


def test_no_models_is_fine(write: Write) -> None:
    assert load_boards(write("")).models == ()


@pytest.mark.parametrize(
    ("keys", "dtype"),
    [("", "float16"), ('calibration = "data.npz"\n', "w8a8"), ('dtype = "prequantised"\n', "prequantised")],
)
def test_data_type_where_it_is_left_out(write: Write, keys: str, dtype: str) -> None:
    (model,) = load_boards(write(ONNX + keys)).models
    assert model.built_dtype == dtype


@pytest.mark.parametrize("path", ["/", "elsewhere/", "~/"])
def test_paths_start_at_the_files_folder_or_are_absolute(write: Write, path: str, tmp_path: Path) -> None:
    inside = tmp_path / "elsewhere"
    inside.mkdir()
    (inside / "net.onnx").write_bytes(b"")
    named = {"/": f"{inside}/net.onnx", "elsewhere/": "elsewhere/net.onnx", "~/": "~/no-such/net.onnx"}[path]
    file = write(f'[[model]]\nname = "mine"\npath = "{named}"\n')
    if path == "~/":
        assert f"there is no file {Path('~/no-such/net.onnx').expanduser()}" in refusal(file)
    else:
        assert load_boards(file).models[0].path == str(inside / "net.onnx")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[[model]]\npath = "net.onnx"\n', ['[[model]] 1, key "name": missing']),
        ('[[model]]\nname = "mine"\n', ['[[model]] 1 ("mine"), key "path": missing']),
        (ONNX.replace("mine", "Mine"), ['key "name": must be lower-case']),
        (ONNX + 'calbration = "data.npz"\n', ['unknown key "calbration"', 'did you mean "calibration"']),
        (ONNX.replace("net.onnx", "gone.onnx"), ['key "path": there is no file', "gone.onnx"]),
        (ONNX.replace("net.onnx", "net.h5"), ['key "path": "net.h5" has none of the suffixes .onnx']),
        (ONNX.replace('"net.onnx"', "3"), ['key "path": must be a text in quotes, not 3']),
        (ONNX.replace("net.onnx", "-net.onnx"), ['key "path": must be a path']),
        (ONNX + 'dtype = "w8a8"\n', ['key "calibration": missing; dtype "w8a8" is quantised on it']),
        (ONNX + 'dtype = "int8"\n', ['key "dtype": must be "w8a8"', 'not "int8"']),
        (ONNX + "sparse = 4\n", ['key "sparse": must be less than or equal to 3']),
        (ONNX + "sparse = 0\n", ['key "sparse": only for quantised models', 'dtype is "float16"']),
        (ONNX + "mean = [1, 2, 3]\n", ['key "std": missing; mean goes with it']),
        (ONNX + "mean = [1, 2]\nstd = [1]\n", ['key "std": has 1 numbers, mean has 2']),
        (ONNX + "mean = [1]\nstd = [0]\n", ['key "std": holds a 0']),
        (ONNX + 'mean = ["a"]\nstd = [1]\n', ['key "mean", entry 1: must be a number, not "a"']),
        (ONNX + "mean = [nan]\nstd = [1]\n", ['key "mean", entry 1: must be a finite number']),
        (
            ONNX + "inputs = [{ shape = [1, 3, 8, 8] }]\nmean = [1]\nstd = [1]\n",
            ['key "mean": has 1 numbers, the input has 3 channels'],
        ),
        (
            ONNX + "inputs = [{ shape = [1, 3] }, { shape = [1, 4] }]\nmean = [1]\nstd = [1]\n",
            ['key "mean": only for models with one input'],
        ),
        (ONNX + "inputs = [{ name = 'a' }]\n", ['key "inputs", entry 1, key "shape": missing']),
        (ONNX + "inputs = [{ shape = [2, 3] }]\n", ['key "inputs", entry 1: shape begins with 2']),
        (ONNX + "inputs = [{ shape = [1, 0] }]\n", ['key "inputs", entry 1, key "shape", entry 2']),
        (
            ONNX + "inputs = [{ shape = [1, 3], layout = 'nhwc' }]\n",
            ['key "inputs", entry 1: layout is for shapes of four dimensions'],
        ),
        (
            ONNX + "inputs = [{ shape = [1, 3], size = 2 }]\n",
            ['key "inputs", entry 1, key "size": unknown key'],
        ),
        (ONNX + "inputs = [3]\n", ['key "inputs", entry 1: must be a table']),
        (ONNX + "outputs = ['a', 'a']\n", ['key "outputs": a name occurs twice']),
        (ONNX + 'weights = "net.caffemodel"\n', ['key "weights": only for Caffe']),
        (ONNX + 'channel_order = "bgr"\n', ['key "channel_order": only for pictures']),
        (ONNX + "top1_drop = 0.1\n", ['key "top1_drop": only with labelled']),
        (ONNX + "float_top1 = 0.1\n", ['key "float_top1": only with labelled']),
        (ONNX + "top1_drop = 2\n", ['key "top1_drop": must be less than or equal to 1']),
        (ONNX + "tolerances = [{ cosine = 0.9 }]\n", ['key "tolerances": only with labelled or calibration']),
        (
            ONNX + "per_soc = { rk3589 = { cpu_operators = 1 } }\n",
            ['key "per_soc": unknown SoC "rk3589"'],
        ),
        (
            ONNX + "per_soc = { rk3588 = { cpu_operators = 1 }, RK3588s = { cpu_operators = 2 } }\n",
            ['key "per_soc": RK3588s and another entry are the same SoC, rk3588'],
        ),
        (ONNX + "per_soc = { rk3566 = {} }\n", ['key "per_soc", key "rk3566": declares nothing']),
        (
            ONNX + "per_soc = { rk3566 = { dtype = 'w8a8' } }\n",
            ['key "per_soc", key "rk3566", key "dtype": unknown key'],
        ),
        (
            ONNX + "per_soc = { rk3566 = { top1_drop = 0.1 } }\n",
            ['key "per_soc": rk3566: top1_drop only with labelled'],
        ),
        (ONNX + 'dense = "other"\n', ['key "sparse": missing; dense is the model that this one was pruned']),
        (
            ONNX + SPARSE + 'dense = "other"\npruning_loss = 0.1\n',
            ['key "dense": there is no [[model]] "other"'],
        ),
        (ONNX + SPARSE + 'dense = "mine"\npruning_loss = 0.1\n', ['key "dense": is the model itself']),
        (ONNX + 'dense = "My Model"\n', ['key "dense": must be the name of another [[model]]']),
        (ONNX + SPARSE + "pruning_loss = 0.1\n", ['key "dense": missing; pruning_loss goes with it']),
        (
            ONNX + SPARSE + 'dense = "two"\npruning_loss = 0.1\n' + ONNX.replace("mine", "two") + SPARSE,
            ['key "dense": "two" declares a sparse mode itself'],
        ),
        (ONNX.replace("net.onnx", "~nobody-of-that-name/net.onnx"), ['key "path": there is no file']),
        (ONNX.replace("net.onnx", "n" * 300 + ".onnx"), ['key "path": there is no file']),
        (ONNX + "tolerances = [{}]\n", ['key "tolerances", entry 1: declares nothing']),
        (ONNX + "tolerances = [{ cosine = 1.5 }]\n", ['key "tolerances", entry 1, key "cosine"']),
        (
            ONNX + 'outputs = ["a", "b", "c"]\ncalibration = "data.npz"\n'
            "tolerances = [{ cosine = 0.9 }, { cosine = 0.9 }]\n",
            ['key "tolerances": has 2 entries for 3 outputs'],
        ),
        (
            ONNX + 'calibration = "picture.jpg"\n',
            ['key "calibration": "picture.jpg" has none of the suffixes'],
        ),
        (ONNX + 'labelled = "data.npy"\n', ['key "labelled": "data.npy" has none of the suffixes .npz']),
        (ONNX + 'calibration = "net.txt"\n', ['key "calibration":', "net.txt names no file"]),
        (ONNX + 'rknn = { rk3589 = "net.rknn" }\n', ['key "rknn": unknown SoC "rk3589"']),
        (
            ONNX + 'rknn = { rk1808 = "net.rknn" }\n',
            ['key "rknn": SoC "rk1808" has an NPU of the older RKNPU1'],
        ),
        (ONNX + 'rknn = { rk3588 = "net.onnx" }\n', ['key "rknn": rk3588: net.onnx is no .rknn file']),
        (ONNX + 'rknn = { rk3588 = "gone.rknn" }\n', ['key "rknn": there is no file', "gone.rknn"]),
        (ONNX + 'rknn = "net.rknn"\n', ['key "rknn": must be a table']),
        (
            '[[model]]\nname = "mine"\nrknn = { rk3588 = "net.rknn" }\ncalibration = "data.npz"\n',
            ['key "calibration": only with path'],
        ),
        ('[[model]]\nname = "mine"\npath = "net.pt"\n', ['key "inputs": missing; a TorchScript model']),
        (
            '[[model]]\nname = "mine"\npath = "net.pb"\ninputs = [{ shape = [1, 4] }]\noutputs = ["y"]\n',
            ['key "inputs": a TensorFlow model needs the name of each input'],
        ),
        ('[[model]]\nname = "mine"\npath = "net.prototxt"\n', ['key "weights": missing; a Caffe model']),
        (
            '[[model]]\nname = "mine"\npath = "net.tflite"\noutputs = ["y"]\n',
            ['key "outputs": the toolkit cuts ONNX and TensorFlow graphs only'],
        ),
        (ONNX + ONNX, ['[[model]] 2 ("mine"), key "name": taken by [[model]] 1']),
        ("[model]\nname = 'mine'\n", ["each model is a table that starts with [[model]]"]),
        ("[[modle]]\nname = 'mine'\n", ['unknown top-level key "modle" (did you mean "model"?)']),
    ],
)
def test_tables_with_a_mistake(write: Write, table: str, words: list[str]) -> None:
    message = refusal(write(table))
    assert all(word in message for word in words), message


def test_all_mistakes_are_told_at_once(write: Write) -> None:
    message = refusal(
        write(ONNX + 'dtype = "w8a8"\ntop1_drop = 0.1\n' + ONNX.replace("mine", "two") + "x = 1\n")
    )
    assert 'key "calibration"' in message
    assert 'key "top1_drop"' in message
    assert '[[model]] 2 ("two"), unknown key "x"' in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"gone.npy\n", "sample 1: there is no file"),
        (b"data.npy data.npy\n", "sample 1: names 2 files, the model has 1 inputs"),
        (b"net.onnx\n", "sample 1: net.onnx is neither .npy nor a picture"),
        (b"da ta.npy\n", "names 2 files"),
        (b"\xff\xfe", "cannot be read as a list of files"),
        (b"\n \n", "names no file"),
    ],
)
def test_calibration_lists(write: Write, content: bytes, words: str) -> None:
    file = write(ONNX + 'inputs = [{ shape = [1, 4] }]\ncalibration = "bad.txt"\n')
    (file.parent / "bad.txt").write_bytes(content)
    message = refusal(file)
    assert '[[model]] 1 ("mine"), key "calibration"' in message
    assert words in message


def test_a_list_of_pictures_may_say_the_order_of_channels(write: Write) -> None:
    (model,) = load_boards(write(ONNX + 'calibration = "list.txt"\nchannel_order = "bgr"\n')).models
    assert model.channel_order == "bgr"


@pytest.mark.parametrize("key", ModelTable.model_fields)
def test_examples_are_taken(key: str) -> None:
    (example,) = ModelTable.model_fields[key].examples or []
    table = {"name": "mine", "path": "net.onnx", "labelled": "l.npz", "calibration": "c.npz"}
    more: dict[str, object] = {
        "weights": {"path": "net.prototxt"},
        "mean": {"std": [1.0, 1.0, 1.0]},
        "std": {"mean": [1.0, 1.0, 1.0]},
        "channel_order": {"calibration": "list.txt"},
        "dense": {"sparse": 0, "pruning_loss": 0.1},
        "pruning_loss": {"sparse": 0, "dense": "other"},
    }.get(key, {})  # type: ignore[assignment]
    model = ModelTable.model_validate({**table, **more, key: example})
    assert key in model.model_fields_set


def test_documentation_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "boards-reference.md"
    text = page.read_text(encoding="utf-8")
    assert plain_keys_table(ModelTable) in text, (
        "run: python -m pytest_rknpu.inventory.reference docs/boards-reference.md"
    )
    assert updated(text) == text
    for key in ModelTable.model_fields:
        assert f"| `{key}` |" in text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(150)
)
@given(st.dictionaries(st.sampled_from([*ModelTable.model_fields, "other"]), VALUES, max_size=5))
def test_any_table_is_taken_or_refused_in_words(tmp_path: Path, table: dict[str, object]) -> None:
    from pytest_rknpu.inventory.model_files import read_models

    models, problems = read_models(tmp_path / "boards.toml", [table])
    assert bool(models) or bool(problems)
    assert all(problem.startswith("[[model]] 1") and "\n" not in problem for problem in problems)

"""A user's models on RKNN-Toolkit2 itself: built, simulated, looked at in its build log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from own_models.project import SIMULATED, SIMULATED_SPARSE, Project, figures, of, run_torch, two_inputs

from pytest_rknpu import models
from pytest_rknpu.models.pictures import png
from pytest_rknpu.toolchain import toolkit_status

STATUS = toolkit_status()
pytestmark = pytest.mark.skipif(
    STATUS.version is None, reason=f"{STATUS.reason}; install it with: {STATUS.install_command}"
)
ACCURACY = "accuracy/test_accuracy.py"


NETWORK = """
torch.manual_seed(5)
pooled = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)]
network = torch.nn.Sequential(*pooled, torch.nn.Flatten(), torch.nn.Linear(8, 4)).eval()
torch.jit.trace(network, torch.zeros(1, 3, 16, 16)).save(sys.argv[1])
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One cache for this module, none of the user's."""
    monkeypatch.setenv("RKNPU_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "own-models-cache"))
    return


def test_two_inputs_by_name_and_in_any_order(project: Project) -> None:
    """two.npz holds them the other way round; the vector has no layout."""
    two_inputs(project.folder)
    project.boards(
        SIMULATED,
        '[[model]]\nname = "two"\npath = "two.onnx"\ncalibration = "two.npz"\n'
        "tolerances = [{ cosine = 0.999, sqnr_db = 25 }]\n",
    )
    (record,) = project.run(ACCURACY, "-k", "float_model and two")
    assert record["outcome"] == "pass", project.output
    assert figures(record)["output 0 compared"] == 12 * 4


def test_a_graph_cut_in_two_places(project: Project) -> None:
    """outputs names a tensor inside; the float model is cut there too."""
    two_inputs(project.folder)
    project.boards(
        SIMULATED,
        '[[model]]\nname = "cut"\npath = "two.onnx"\ncalibration = "one.npz"\n'
        'inputs = [{ name = "a", shape = [1, 3, 8, 8] }]\noutputs = ["f", "pooled"]\n'
        "tolerances = [{ cosine = 0.999 }, { cosine = 0.999 }]\n",
    )
    with np.load(project.folder / "two.npz") as archive:
        np.savez(project.folder / "one.npz", a=archive["a"])
    (record,) = project.run(ACCURACY, "-k", "float_model and cut")
    assert record["outcome"] == "pass", project.output
    assert {"output 0 cosine", "output 1 cosine"} <= set(figures(record))


def test_torchscript_is_held_against_the_toolkits_float16(project: Project) -> None:
    run_torch(NETWORK, project.folder / "net.pt")
    data = np.random.default_rng(0).normal(size=(24, 3, 16, 16)).astype(np.float32)
    np.save(project.folder / "data.npy", data)
    project.boards(
        SIMULATED,
        '[[model]]\nname = "script"\npath = "net.pt"\ninputs = [{ shape = [1, 3, 16, 16] }]\n'
        'calibration = "data.npy"\ntolerances = [{ cosine = 0.99 }]\n',
    )
    (record,) = project.run(ACCURACY, "-k", "float_model and script")
    assert record["outcome"] == "pass", project.output
    assert any("float16" in note for note in record["notes"])


def test_a_model_that_the_toolkit_refuses_is_its_owners_affair(project: Project) -> None:
    """Its own words, behind the table's name; ACC-07 and MEM-12 as well as ACC-01."""
    model = onnx.load(project.folder / "digits.onnx")
    model.opset_import[0].version = 21
    onnx.save(model, project.folder / "new.onnx")
    project.boards(SIMULATED, '[[model]]\nname = "new"\npath = "new.onnx"\ncalibration = "normalised.npz"\n')
    suites = ("accuracy/test_own_models.py", "memory/test_memory_plan.py", "accuracy/test_cpu_operators.py")
    records = project.run(ACCURACY, *suites, "-k", "sim-new and not quantised")
    assert len(records) == 4
    for record in records:
        assert record["outcome"] == "inconclusive", record
        assert re.search(r'^\[\[model\]\] "new": RKNN-Toolkit2 .*Unsupport onnx opset 21', record["message"])


def test_free_dimensions_are_fixed_by_inputs_without_names(project: Project) -> None:
    model = onnx.load(project.folder / "digits.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, project.folder / "free.onnx")
    project.boards(
        SIMULATED,
        '[[model]]\nname = "free"\npath = "free.onnx"\ncalibration = "normalised.npz"\n'
        "inputs = [{ shape = [1, 3, 16, 16] }]\ntolerances = [{ cosine = 0.99 }]\n",
    )
    (record,) = project.run(ACCURACY, "-k", "float_model and free")
    assert record["outcome"] == "pass", project.output


def test_whole_numbers_in_and_one_number_out(project: Project) -> None:
    """Tokens as int64; a regression, whose one output has no cosine, is judged by its largest error."""
    random = np.random.default_rng(2)
    constants = [
        numpy_helper.from_array(random.normal(size=(20, 8)).astype(np.float32), "table"),
        numpy_helper.from_array(random.normal(size=(40, 1)).astype(np.float32), "matrix"),
    ]
    nodes = [
        helper.make_node("Gather", ["tokens", "table"][::-1], ["rows"]),
        helper.make_node("Flatten", ["rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["angle"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tokens",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, 5])],
        [helper.make_tensor_value_info("angle", TensorProto.FLOAT, [1, 1])],
        constants,
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(content, project.folder / "tokens.onnx")
    np.savez(project.folder / "tokens.npz", tokens=random.integers(0, 20, (12, 5)))
    project.boards(
        SIMULATED,
        '[[model]]\nname = "tokens"\npath = "tokens.onnx"\ncalibration = "tokens.npz"\n'
        "tolerances = [{ max_error = 2.0 }]\n",
    )
    (record,) = project.run(ACCURACY, "-k", "float_model and tokens")
    assert record["outcome"] == "pass", project.output
    assert figures(record)["output 0 compared"] == 12


def test_a_calibration_list_in_a_folder_with_a_blank(project: Project) -> None:
    """RKNN-Toolkit2 splits the lines of a list at blanks; what the user calls folders is not its affair."""
    folder = project.folder / "my pictures"
    folder.mkdir()
    pixels = np.random.default_rng(1).integers(0, 255, (4, 3, 16, 16), np.uint8)
    for number, picture in enumerate(pixels):
        (folder / f"{number}.png").write_bytes(png(picture))
    (folder / "list.txt").write_text("0.png\n1.png\n2.png\n3.png\n")
    project.boards(
        SIMULATED,
        '[[model]]\nname = "blank"\npath = "digits.onnx"\ncalibration = "my pictures/list.txt"\n'
        "mean = [128, 128, 128]\nstd = [64, 64, 64]\ncpu_operators = 1\n",
    )
    (record,) = project.run("accuracy/test_cpu_operators.py", "-k", "blank")
    assert record["outcome"] == "pass", record["message"]


@pytest.mark.skipif(find_spec("tensorflow") is not None, reason="tensorflow is installed")
def test_tensorflow_lite_without_tensorflow_is_skipped_by_name(project: Project) -> None:
    (project.folder / "net.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(100))
    project.boards(SIMULATED, '[[model]]\nname = "lite"\npath = "net.tflite"\n')
    records = project.run(ACCURACY, "memory/test_memory_plan.py", "-k", "lite")
    assert {record["outcome"] for record in records} == {"skip"}
    reasons = [record["message"] for record in records]
    assert (
        sum("loads TensorFlow Lite models by tensorflow, which is not installed" in r for r in reasons) >= 2
    )


def test_a_pruned_model_runs_the_sparse_suite(project: Project) -> None:
    """4:2 along input channels on RK3576; the dense twin, claimed sparse, fails."""
    pruned, dense = models.load("digits_aligned_input"), models.load("digits_aligned")
    (project.folder / "pruned.onnx").write_bytes(pruned.float_onnx)
    (project.folder / "dense.onnx").write_bytes(dense.float_onnx)
    np.savez(project.folder / "aligned.npz", input=pruned.calibration)
    table = '[[model]]\nname = "{0}"\npath = "{0}.onnx"\ncalibration = "aligned.npz"\nsparse = 0\n'
    project.boards(SIMULATED_SPARSE, table.format("pruned"), table.format("dense"))
    records = project.run("sparse/test_own_sparse_models.py", "-k", "pruned] or run_sparse")
    assert of(records, "test_pruned_layers_run_sparse", "pruned")["outcome"] == "pass", project.output
    assert of(records, "test_sparse_inference_changes_little", "pruned")["outcome"] == "pass"
    assert of(records, "test_sparse_is_not_slower", "pruned")["outcome"] == "pass"
    claimed = of(records, "test_pruned_layers_run_sparse", "dense")
    assert claimed["outcome"] == "fail"
    assert "no layer that could run sparse holds the pattern of mode 0" in claimed["message"]


def test_a_calibration_list_of_arrays(project: Project) -> None:
    """The same samples by a list: the toolkit reads the files themselves."""
    names = []
    for number, sample in enumerate(project.normalised[:12]):
        names.append(f"sample{number}.npy")
        np.save(project.folder / names[-1], sample[None])
    (project.folder / "list.txt").write_text("\n".join(names) + "\n\n")
    project.boards(
        SIMULATED,
        '[[model]]\nname = "listed"\npath = "digits.onnx"\ncalibration = "list.txt"\n'
        "tolerances = [{ cosine = 0.99 }]\n",
    )
    (record,) = project.run(ACCURACY, "-k", "float_model and listed")
    assert record["outcome"] == "pass", project.output
    assert figures(record)["output 0 compared"] == 12 * 10


def test_wrong_normalisation_of_the_build_fails(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolkit that normalises twice: the float model does it once, so ACC-01 fails."""
    from pytest_rknpu.toolchain import CompileOptions

    once = CompileOptions.config_keywords

    def twice(options: CompileOptions) -> dict[str, object]:
        keywords: dict[str, object] = dict(once(options))
        # ((x - 128) / 64 - 128) / 64 in one step.
        return {**keywords, "mean_values": [[8320.0] * 3], "std_values": [[4096.0] * 3]}

    table = (
        '[[model]]\nname = "mine"\npath = "digits.onnx"\n'
        'inputs = [{ shape = [1, 3, 16, 16], layout = "nhwc" }]\nmean = [128, 128, 128]\nstd = [64, 64, 64]\n'
        'calibration = "calibration.npz"\nlabelled = "labelled.npz"\ntop1_drop = 0.05\nfloat_top1 = 0.9\n'
        "tolerances = [{ cosine = 0.98 }]\n"
    )
    project.boards(SIMULATED, table)
    (right,) = project.run(ACCURACY, "-k", "float_model and mine")
    assert right["outcome"] == "pass", project.output
    monkeypatch.setattr(CompileOptions, "config_keywords", twice)
    (wrong,) = project.run(ACCURACY, "-k", "float_model and mine")
    assert wrong["outcome"] in ("fail", "inconclusive"), project.output

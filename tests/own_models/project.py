"""What the tests of the user's models work in: model and data files, a boards.toml, runs of the suites."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from pytest_rknpu import models

SUITES = Path(__file__).parents[2] / "suites"
EMULATED = '[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n'
SIMULATED = '[[board]]\nname = "sim"\nsoc = "rk3588"\nruntime = "simulator"\n'
SIMULATED_SPARSE = '[[board]]\nname = "sim76"\nsoc = "rk3576"\nruntime = "simulator"\n'
MEAN, STD = 128.0, 64.0


def pictures(normalised: NDArray[np.float32]) -> NDArray[np.float32]:
    """What comes before mean 128 and deviation 64, (N, H, W, C)."""
    return (normalised * np.float32(STD) + np.float32(MEAN)).transpose(0, 2, 3, 1)


class Project:
    """A folder with digits.onnx (float) and quantised.onnx (QDQ), and data for them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path
        model, labelled = models.load("digits_cnn"), models.load_labelled("digits_cnn")
        (self.folder / "digits.onnx").write_bytes(model.float_onnx)
        (self.folder / "quantised.onnx").write_bytes(model.qdq_onnx)
        self.normalised = model.calibration
        self.labels = labelled.labels[:60]
        np.savez(self.folder / "calibration.npz", input=pictures(model.calibration))
        np.savez(self.folder / "labelled.npz", any=pictures(labelled.inputs[:60]), labels=self.labels)
        np.savez(self.folder / "normalised.npz", input=model.calibration)

    def boards(self, *tables: str) -> None:
        """Write boards.toml."""
        (self.folder / "boards.toml").write_text("\n".join(tables), encoding="utf-8")

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """Run the suites as a user does, with ``arguments`` (files of suites/ first); returns the records."""
        files = [str(SUITES / word) if word.endswith(".py") else word for word in arguments]
        outcome = self.pytester.runpytest(
            *files, "--boards", "boards.toml", "--rknpu-report", "out", "-q", "-p", "no:cacheprovider"
        )
        self.output = "\n".join([*outcome.outlines, *outcome.errlines])
        written = self.folder / "out" / "results.jsonl"
        assert written.exists(), self.output
        records = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
        return [record for record in records if "outcome" in record]


def of(records: list[dict[str, Any]], test: str, model: str) -> dict[str, Any]:
    """The one record of a test on a model."""
    (found,) = (
        record for record in records if f"::{test}[" in record["nodeid"] and f"-{model}]" in record["nodeid"]
    )
    return found


def figures(record: dict[str, Any]) -> dict[str, Any]:
    """Measured values by name."""
    return {measurement["name"]: measurement["value"] for measurement in record["measurements"]}


def two_inputs(folder: Path) -> None:
    """two.onnx: a picture "a" (1, 3, 8, 8) and a vector "b" (1, 5); outputs "y" (1, 4) and "f" (1, 4)."""
    random = np.random.default_rng(3)
    nodes = [
        helper.make_node("Conv", ["a", "kernel"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["f"]),
        helper.make_node("MatMul", ["b", "matrix"], ["m"]),
        helper.make_node("Add", ["f", "m"], ["y"]),
    ]

    def value(name: str, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    constants = [
        numpy_helper.from_array(random.normal(size=(4, 3, 3, 3)).astype(np.float32), "kernel"),
        numpy_helper.from_array(random.normal(size=(5, 4)).astype(np.float32), "matrix"),
    ]
    graph = helper.make_graph(
        nodes, "two", [value("a", 1, 3, 8, 8), value("b", 1, 5)], [value("y", 1, 4)], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, folder / "two.onnx")
    np.savez(
        folder / "two.npz",
        b=random.normal(size=(12, 5)).astype(np.float32),
        a=random.normal(size=(12, 3, 8, 8)).astype(np.float32),
    )


def run_torch(script: str, file: Path) -> None:
    """Let torch write ``file`` (sys.argv[1]), in a process of its own: it cannot be imported twice."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed; it comes with RKNN-Toolkit2")
    subprocess.run([sys.executable, "-c", f"import sys, torch\n{script}", str(file)], check=True, timeout=120)

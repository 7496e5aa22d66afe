"""A user's models on an emulated board: no toolkit is needed, and nothing but QDQ ONNX runs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from own_models.project import EMULATED, Project, figures, of

QUANTISED = """
[[model]]
name = "mine"
path = "quantised.onnx"
dtype = "prequantised"
calibration = "normalised.npz"
tolerances = [{ cosine = 0.999, max_error = 0.2 }]
"""
PICTURES = """
[[model]]
name = "mine"
path = "quantised.onnx"
dtype = "prequantised"
inputs = [{ shape = [1, 3, 16, 16], layout = "nhwc" }]
mean = [128, 128, 128]
std = [64, 64, 64]
labelled = "labelled.npz"
tolerances = [{ cosine = 0.999, max_error = 0.2 }]
top1_drop = 0.0
float_top1 = 0.9
"""
ACCURACY = "accuracy/test_accuracy.py"


@pytest.mark.parametrize("table", [QUANTISED, PICTURES], ids=["normalised", "pictures"])
def test_a_quantised_model_runs_through_accuracy_and_memory(project: Project, table: str) -> None:
    project.boards(EMULATED, table)
    records = project.run(ACCURACY, "memory/test_canaries.py", "memory/test_layouts.py", "-k", "mine")
    outcomes = {(record["nodeid"].rpartition("/")[2], record["outcome"]) for record in records}
    assert {outcome for _, outcome in outcomes} == {"pass"}, project.output
    shown = {requirement for record in records for requirement in record["requirement"]}
    assert shown == {"ACC-01", "ACC-02", "MEM-04", "MEM-05", "MEM-09"}
    against_float = of(records, "test_board_agrees_with_the_float_model", "mine")
    assert figures(against_float)["output 0 cosine"] > 0.999
    assert ("top-1" in figures(against_float)) == (table is PICTURES)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("mean = [128, 128, 128]", "mean = [0, 0, 0]"), "mistrusted: the float model itself gets"),
        (("std = [64, 64, 64]", "std = [4096, 4096, 4096]"), "mistrusted: the float model itself gets"),
        (('layout = "nhwc"', 'layout = "nchw"'), "the input takes (N, 3, 16, 16)"),
    ],
    ids=["mean", "std", "layout"],
)
def test_a_mistaken_table_does_not_pass(project: Project, change: tuple[str, str], words: str) -> None:
    """Board and float model are fed alike, so only the labels can show that both are fed with nonsense."""
    assert change[0] in PICTURES
    project.boards(EMULATED, PICTURES.replace(*change))
    (record,) = project.run(ACCURACY, "-k", "float_model and mine")
    assert record["outcome"] == "inconclusive", project.output
    assert words in record["message"]


BAD = {
    "truncated": ('path = "half.onnx"', 'key "path": .*half.onnx is no ONNX file, or truncated'),
    "outside": ('path = "outside.onnx"', 'key "path": .*keeps weights in other files \\(gone.bin\\)'),
    "float": ('path = "digits.onnx"', 'key "dtype": is "prequantised", but .* is a float graph'),
    "cut": ('path = "quantised.onnx"\noutputs = ["no"]', "key \"outputs\": .* has no tensor 'no'"),
    "mean": ('path = "quantised.onnx"\nmean = [1]\nstd = [1]', 'key "mean": has 1 numbers, .* 3 channels'),
    "grey": (
        'path = "quantised.onnx"\ncalibration = "grey.npz"',
        'key "calibration": .*shape .4, 1, 16, 16.',
    ),
    "unfit": ('path = "unfit.onnx"', "output 'cosine' is not quantised"),
    "labels": ('path = "quantised.onnx"\nlabelled = "labels.npz"', 'key "labelled": labels reach 14'),
}


def test_bad_models_are_their_owners_affair(project: Project) -> None:
    """Each is one kind of outcome, whatever test meets it, and names table, key and what is wrong."""
    import onnx
    from onnx import helper

    half = (project.folder / "digits.onnx").read_bytes()
    (project.folder / "half.onnx").write_bytes(half[: len(half) // 2])
    model = onnx.load(project.folder / "quantised.onnx")
    onnx.save(
        model,
        project.folder / "outside.onnx",
        save_as_external_data=True,
        location="gone.bin",
        size_threshold=0,
    )
    (project.folder / "gone.bin").unlink()
    model = onnx.load(project.folder / "quantised.onnx")
    model.graph.node.append(helper.make_node("Cos", [model.graph.output[0].name], ["cosine"]))
    model.graph.output[0].name = "cosine"
    onnx.save(model, project.folder / "unfit.onnx")
    np.savez(project.folder / "grey.npz", input=project.normalised[:4, :1])
    np.savez(project.folder / "labels.npz", input=project.normalised[:4], labels=np.arange(4) + 11)
    data = 'calibration = "normalised.npz"\n'
    tables = [
        f'[[model]]\nname = "bad-{name}"\ndtype = "prequantised"\n{keys}\n'
        f"{'' if 'calibration' in keys else data}{'top1_drop = 0.1' if 'labelled' in keys else ''}"
        for name, (keys, _) in BAD.items()
    ]
    project.boards(EMULATED, *tables)
    records = project.run(ACCURACY, "memory/test_canaries.py", "-k", "bad-")
    for name, (_, words) in BAD.items():
        mine = [record for record in records if f"bad-{name}]" in record["nodeid"]]
        named = [r for r in mine if re.search(rf'^\[\[model\]\] "bad-{name}".*({words})', r["message"])]
        assert {record["outcome"] for record in named} == {"inconclusive"}, (name, mine)
        # What needs neither samples nor labels runs where these alone are bad.
        assert len(named) == len(mine) or name in ("labels", "grey"), (name, mine)
    assert "harness" not in {record["outcome"] for record in records}


@pytest.mark.parametrize(
    ("fault", "suite", "test", "requirement"),
    [
        ("output-incomplete", "memory/test_canaries.py", "fully_written", "MEM-05"),
        ("stale-previous-frame", ACCURACY, "float_model", "ACC-01"),
    ],
)
def test_a_faulty_board_fails_on_the_users_model(
    project: Project, fault: str, suite: str, test: str, requirement: str
) -> None:
    project.boards(EMULATED + f'faults = ["{fault}"]\n', QUANTISED)
    (record,) = project.run(suite, "-k", f"{test} and mine")
    assert record["outcome"] == "fail", project.output
    assert record["requirement"] == [requirement]


def test_float_models_are_skipped_with_the_proof(project: Project) -> None:
    table = QUANTISED.replace("quantised.onnx", "digits.onnx").replace('"prequantised"', '"w8a8"')
    project.boards(EMULATED, table)
    records = project.run(ACCURACY, "memory/test_canaries.py", "-k", "mine")
    assert {record["outcome"] for record in records} == {"skip"}
    assert all("is no QDQ ONNX graph" in record["message"] for record in records)


def test_without_tolerances_it_is_measured_and_not_passed(project: Project) -> None:
    project.boards(EMULATED, QUANTISED.replace("tolerances = [{ cosine = 0.999, max_error = 0.2 }]", ""))
    (record,) = project.run(ACCURACY, "-k", "float_model and mine")
    assert record["outcome"] == "skip"
    assert "measured, not judged" in record["message"]
    assert figures(record)["output 0 cosine"] > 0.99


def test_latency_and_memory_budgets_name_the_users_model(project: Project) -> None:
    """On an emulated board that plays time LAT-01 and MEM-01 are judged by the budget of the model."""
    budget = """
[[budget]]
model = "mine"
soc = "rk3588"
p50_ms = {p50}
samples = 300
weight_bytes = {weights}
"""
    suites = ("latency/test_budgets.py", "memory/test_size_budgets.py")
    arguments = ("-k", "mine and (within_their_budget or memory_stays)", "--rknpu-latency-model", "steady")
    project.boards(EMULATED, QUANTISED, budget.format(p50=900.0, weights=10**7))
    kept = project.run(*suites, *arguments)
    assert {record["outcome"] for record in kept} == {"pass"}, project.output
    assert {id for record in kept for id in record["requirement"]} == {"LAT-01", "MEM-01"}
    project.boards(EMULATED, QUANTISED, budget.format(p50=0.11, weights=10))
    broken = project.run(*suites, *arguments)
    assert {record["outcome"] for record in broken} == {"fail"}, project.output

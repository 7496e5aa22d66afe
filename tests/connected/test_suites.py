"""The suites on a connected board, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connected.conftest import INTERNAL, LAYERS, SetMood

from pytest_rknpu.inventory.schema import load_boards

SUITES = Path(__file__).parents[2] / "suites"
BOARDS = """
[[board]]
name = "lab"
soc = "rk3588"
runtime = "connected"
"""
Record = dict[str, Any]


def run(pytester: pytest.Pytester, *arguments: str, boards: str = BOARDS) -> list[Record]:
    (pytester.path / "boards.toml").write_text(boards)
    files = [str(SUITES / word) if "/" in word else word for word in arguments]
    result = pytester.runpytest(
        *files, "--boards", "boards.toml", "--rknpu-report", "out", "-p", "no:cacheprovider"
    )
    text = "\n".join([*result.outlines, *result.errlines])
    written = pytester.path / "out" / "results.jsonl"
    assert written.exists(), text
    return [r for line in written.read_text().splitlines() if "outcome" in (r := json.loads(line))]


def outcomes(records: list[Record]) -> dict[str, str]:
    return {record["nodeid"].partition("::")[2].partition("[")[0]: record["outcome"] for record in records}


def test_a_board_that_is_well(pytester: pytest.Pytester, mood: SetMood) -> None:
    records = run(pytester, "connected/test_connected.py")
    assert outcomes(records) == {
        "test_versions_are_recorded": "pass",
        "test_memory_agrees_with_the_build_log": "pass",
        "test_memory_stays_within_its_budget": "skip",
        "test_time_of_a_frame_is_measured": "skip",
        "test_operators_on_the_cpu": "pass",
    }
    assert {record["evidence"] for record in records} == {"hardware"}
    timed = next(r for r in records if "test_time_of" in r["nodeid"])
    assert {"name": "eval_perf, median", "value": 7.14, "unit": "ms"} in timed["measurements"]


@pytest.mark.parametrize(
    ("changes", "test", "words"),
    [
        (
            {"memory": {"weight_memory": 1, "internal_memory": INTERNAL, "total_memory": 9}},
            "test_memory_agrees_with_the_build_log",
            "weight memory is 1 bytes on the board",
        ),
        (
            {"perf_layers": LAYERS.replace("ConvRelu INT8 NPU", "Softmax INT8 CPU")},
            "test_operators_on_the_cpu",
            "Softmax Conv:c",
        ),
    ],
    ids=["memory", "operators"],
)
def test_a_board_that_is_not(
    pytester: pytest.Pytester, mood: SetMood, changes: dict[str, Any], test: str, words: str
) -> None:
    mood(**changes)
    (record,) = run(pytester, "connected/test_connected.py", "-k", test)
    assert record["outcome"] == "fail"
    assert words in record["message"]


def test_accuracy_runs_there_and_tests_of_the_c_api_do_not(pytester: pytest.Pytester, mood: SetMood) -> None:
    records = run(
        pytester, "accuracy/test_accuracy.py", "memory/test_canaries.py", "-k", "float_model or fully"
    )
    accuracy = {r["outcome"] for r in records if "test_accuracy" in r["nodeid"]}
    assert accuracy == {"pass"}
    (memory,) = {(r["outcome"], r["board"]) for r in records if "test_canaries" in r["nodeid"]}
    assert memory == ("skip", None)


@pytest.mark.parametrize(("inference", "outcome"), [("ok", "pass"), ("doubled", "fail")])
def test_pictures_are_normalised_once_there(
    pytester: pytest.Pytester, mood: SetMood, inference: str, outcome: str
) -> None:
    """ACC-05: mean and deviation are those that the model was built with."""
    mood(inference=inference)
    (record,) = run(pytester, "accuracy/test_preparation.py", "-k", "mean_and_deviation")
    assert (record["outcome"], record["requirement"], record["evidence"]) == (outcome, ["ACC-05"], "hardware")


def test_a_wrong_board_fails_accuracy(pytester: pytest.Pytester, mood: SetMood) -> None:
    mood(inference="doubled")
    (record,) = run(pytester, "accuracy/test_accuracy.py", "-k", "float_model and digits_cnn")
    assert record["outcome"] == "fail"


def test_no_device_is_infra_for_each_test_and_other_boards_go_on(
    pytester: pytest.Pytester, mood: SetMood
) -> None:
    mood(adb=[])
    boards = BOARDS + '\n[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n'
    records = run(pytester, "accuracy/test_accuracy.py", "-k", "float_model and pointwise", boards=boards)
    by_board = {record["board"]: record for record in records}
    assert by_board["lab"]["outcome"] == "infra"
    assert "no device is connected" in by_board["lab"]["message"]
    assert by_board["emu"]["outcome"] == "pass"


def test_the_lease_is_the_devices(tmp_path: Path) -> None:
    """Two files that mean one device share its lease; two devices do not."""
    file = tmp_path / "boards.toml"
    file.write_text(BOARDS + 'device_id = "A1"\n' + BOARDS.replace("lab", "two") + 'device_id = "B2"\n')
    one, two = load_boards(file).boards
    assert one.lease_key(file) == one.lease_key(tmp_path / "other.toml") == "adb:A1"
    assert two.lease_key(file) == "adb:B2"
    assert one.evidence == "hardware"

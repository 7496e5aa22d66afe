"""Outcomes, records and judgements: the rules, one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu import errors
from pytest_rknpu.errors import ConfigurationError, HarnessError
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.verdict import (
    CAPABILITIES,
    REQUIREMENTS,
    ItemRecord,
    Outcome,
    Phase,
    conclude,
    lacking,
    message_of,
    outcome_of,
    require_known,
    unexpected_log_error,
)


@pytest.mark.parametrize(
    ("exception", "outcome"),
    [
        (None, "pass"),
        (AssertionError("x"), "fail"),
        (errors.ConformanceFailure("x"), "fail"),
        (errors.Inconclusive("x"), "inconclusive"),
        (errors.BoardError("x"), "infra"),
        (errors.BoardLost("x"), "infra"),
        (errors.LeaseTimeout("x"), "infra"),
        (errors.HarnessError("x"), "harness"),
        (errors.ConfigurationError("x"), "harness"),
        (errors.ToolkitError("x"), "harness"),
        (errors.ModelError("x"), "harness"),
        (errors.RknpuError("x"), "harness"),
        (ValueError("x"), "harness"),
        (TimeoutError("x"), "harness"),
        (ConnectionError("x"), "harness"),
        (pytest.skip.Exception("proof"), "skip"),
        (pytest.skip.Exception(""), "harness"),
        (pytest.skip.Exception("  "), "harness"),
        (pytest.skip.Exception("unconditional skip"), "harness"),
        (pytest.fail.Exception("x"), "fail"),
        (pytest.xfail.Exception("x"), "fail"),
        (pytest.fail.Exception("Timeout (>5.0s) from pytest-timeout."), "infra"),
    ],
)
def test_outcomes(exception: BaseException | None, outcome: str) -> None:
    assert outcome_of(exception) == outcome
    assert bool(message_of(exception)) == (exception is not None)


def test_every_error_class_has_an_outcome() -> None:
    own = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert len(own) >= 10
    assert all(outcome_of(each("x")) in Outcome and outcome_of(each("x")) != "pass" for each in own)


def test_foreign_errors_are_introduced_by_their_class() -> None:
    assert message_of(KeyError("k")) == "KeyError: 'k'"
    assert message_of(ZeroDivisionError()) == "ZeroDivisionError"
    assert message_of(errors.ConformanceFailure("stale")) == "stale"
    assert message_of(AssertionError()) == "AssertionError"


def record(**changes: object) -> ItemRecord:
    """A record of SYNC-01."""
    return ItemRecord(**{"nodeid": "t.py::t", "requirements": ("SYNC-01",), "seed": 1, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        (["pass", "pass", "pass"], "pass"),
        (["skip", "pass"], "skip"),
        (["pass", "skip", "pass"], "skip"),
        (["pass", "fail", "infra"], "fail"),
        (["pass", "pass", "infra"], "infra"),
        (["pass", "skip", "harness"], "harness"),
        (["infra", "pass"], "infra"),
    ],
)
def test_phases_come_to_one_verdict(phases: list[str], outcome: str) -> None:
    given = [Phase(str(n), Outcome(each), f"message {n}", 0.5) for n, each in enumerate(phases)]
    verdict = conclude(record(), given)
    assert verdict.outcome == outcome
    assert verdict.duration_s == 0.5 * len(phases)
    deciding = next(phase for phase in given if phase.outcome == outcome)
    assert outcome == "pass" or verdict.message == deciding.message


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("expected", [False, True])
def test_log_errors(outcome: Outcome, expected: bool) -> None:
    own = record(expects_runtime_errors=expected)
    assert unexpected_log_error(own, outcome) is None
    own.runtime_logged([f"E RKNN: {n}" for n in range(8)])
    failure = unexpected_log_error(own, outcome)
    decides = outcome in (Outcome.PASS, Outcome.SKIP, Outcome.INCONCLUSIVE) and not expected
    assert (failure is not None) == decides
    if failure is not None:
        assert "VER-05" in str(failure)
        assert "E RKNN: 4" in str(failure)
        assert "8 lines in all" in str(failure)


def test_the_end_of_the_log_is_kept_and_bounded() -> None:
    own = record()
    own.runtime_logged([], "\n".join(f"I RKNN: {n}" for n in range(100)) + "\n")
    assert own.runtime_log.splitlines() == [f"I RKNN: {n}" for n in range(70, 100)]
    own.runtime_logged([], "x" * 10_000 + "\udcff")
    assert 3_990 < len(own.runtime_log) < 4_010
    assert own.runtime_log.endswith("x\\udcff")


def test_a_failure_with_log_errors_breaks_ver_05_too() -> None:
    own = record()
    own.runtime_logged(["E RKNN: x"])
    failed = [Phase("call", Outcome.FAIL, "x", 0)]
    assert conclude(own, failed).requirements == ("SYNC-01", "VER-05")
    assert conclude(own, [Phase("call", Outcome.INFRA, "x", 0)]).requirements == ("SYNC-01",)
    already = record(requirements=("VER-05",))
    already.runtime_logged(["E RKNN: x"])
    assert conclude(already, failed).requirements == ("VER-05",)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1, 1),
        (True, True),
        ("word", "word"),
        (0.5, 0.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (np.float32(0.25), 0.25),
        (np.uint8(7), 7),
        (np.bool_(True), True),
        (np.array([3]), 3),
    ],
)
def test_measured_values_become_plain(value: object, kept: object) -> None:
    own = record()
    own.measure("m", value, "u")  # type: ignore[arg-type]
    measured = own.measurements[0].value
    assert (measured, type(measured)) == (kept, type(kept))


@pytest.mark.parametrize("value", [np.zeros(2), [1], None, object()])
def test_what_is_no_figure_is_refused(value: object) -> None:
    with pytest.raises(HarnessError, match="'m'"):
        record().measure("m", value)  # type: ignore[arg-type]


def test_a_name_is_used_once() -> None:
    own = record()
    own.measure("m", 1)
    with pytest.raises(HarnessError, match="there already"):
        own.measure("m", 2)
    with pytest.raises(HarnessError, match="needs a name"):
        own.measure("", 2)


def test_the_catalogue_is_whole() -> None:
    sizes = {"SYNC": 16, "MEM": 14, "SPARSE": 8, "ACC": 7, "LAT": 10, "VER": 6, "ERR": 6}
    whole = [f"{chapter}-{n:02}" for chapter, size in sizes.items() for n in range(1, size + 1)]
    assert list(REQUIREMENTS) == whole
    assert all(each.chapter == id.split("-")[0] and each.text for id, each in REQUIREMENTS.items())


@pytest.mark.parametrize(
    ("id", "hint"),
    [("sync-01", "SYNC-01"), ("SYNC1", "SYNC-"), ("LATT-03", "LAT-03"), ("nothing", "chapters: SYNC")],
)
def test_an_unknown_requirement_names_the_nearest(id: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match="here") as refused:
        require_known([id], "here")
    assert hint in str(refused.value)


def test_capabilities_are_proved_absent_by_the_soc_table() -> None:
    rk3588, rv1106 = SOCS["rk3588"], SOCS["rv1106"]
    assert [name for name in CAPABILITIES if lacking([name], rk3588, "hardware")] == ["sparse"]
    lacked = {name for name in CAPABILITIES if lacking([name], rv1106, "hardware")}
    assert lacked == {"several_cores", "core_masks", "sparse", "null_context_sync", "copying_api"}
    assert lacking(["hardware"], rk3588, "hardware") is None
    assert "no meaningful time" in str(lacking(["hardware"], rk3588, "emulator"))


def test_functions_are_looked_for_in_table_and_library() -> None:
    soc = SOCS["rk3588"]
    assert lacking(["rknn_run"], soc, "emulator") is None
    assert lacking(["rknn_run"], soc, "emulator", {"rknn_run"}) is None
    both = ["rknn_run", "rknn_mem_sync"]
    assert "does not export rknn_mem_sync" in str(lacking(both, soc, "emulator", {"rknn_run"}))
    assert "not supported" in str(lacking(["rknn_wait"], soc, "emulator", {"rknn_wait"}))


def test_suites_name_requirements_that_exist() -> None:
    import re

    suites = Path(__file__).parents[2] / "suites"
    named = [
        id
        for path in suites.rglob("test_*.py")
        for marks in re.findall(r"mark\.requirement\(([^)]*)\)", path.read_text(encoding="utf-8"))
        for id in re.findall(r'"([^"]+)"', marks)
    ]
    assert named
    assert set(named) <= set(REQUIREMENTS)

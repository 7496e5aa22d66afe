"""Every exit code that docs/command-line.md promises, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compare.make import processes, run_of, timed, write
from page.pages import small
from report.samples import result

from pytest_rknpu import models
from pytest_rknpu.cli.app import application
from pytest_rknpu.cli.doctor.finding import HOST, ok
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.report.junit import write_junit
from pytest_rknpu.report.results import Results
from pytest_rknpu.verdict import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
EMULATED = '[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n'
HERE = '[[board]]\nname = "here"\nsoc = "rk3588"\nruntime = "librknnrt"\ntransport = "local"\n'
WAIVER = (
    '[[waiver]]\nrequirement = "SYNC-07"\nboard = "emu"\nmessage = "lost"\nreason = "known"\nexpires = {}\n'
)

CASES: dict[str, dict[int, str]] = {
    "boards": {0: "boards", 2: "boards --boards broken.toml"},
    "doctor": {0: "doctor", 1: "doctor --boards broken.toml", 2: "doctor --board other"},
    "probe": {0: "probe --board emu", 1: "probe --boards here.toml --board here", 2: "probe --board other"},
    "compile": {
        0: "compile model.onnx --soc rk3588",
        1: "compile model.onnx --soc rk3588 --soc rk3576",
        2: "compile model.onnx",
    },
    "init": {0: "init new", 2: "init ."},
    "compare": {
        0: "compare good good",
        1: "compare good slow",
        2: "compare good other",
        3: "compare good torn",
    },
    "history": {
        0: "history good",
        1: "history green red --fail-on-regression",
        2: "history",
        3: "history good torn",
    },
    "suggest-budgets": {0: "suggest-budgets good", 2: "suggest-budgets good --evidence emulator"},
    "report": {0: "report good", 2: "report missing"},
    "bundle": {0: "bundle handed", 2: "bundle missing"},
    "verify": {0: "verify handed.zip", 1: "verify handed.zip --must-pass must.txt", 2: "verify boards.toml"},
    "waivers": {0: "waivers", 1: "waivers expired.toml", 2: "waivers broken.toml"},
    "schema": {0: "schema"},
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rknpu) -> Path:
    """What the command lines above are about."""
    (tmp_path / "boards.toml").write_text(EMULATED)
    (tmp_path / "broken.toml").write_text(EMULATED.replace("rk3588", "rk3589"))
    (tmp_path / "here.toml").write_text(HERE)
    (tmp_path / "waivers.toml").write_text("")
    (tmp_path / "expired.toml").write_text(WAIVER.format("2020-01-31"))
    (tmp_path / "must.txt").write_text("SYNC-16\n")
    (tmp_path / "model.onnx").write_bytes(models.load("digits_cnn").float_onnx)
    _runs(tmp_path)
    assert rknpu("bundle", "handed").code == 0
    monkeypatch.setattr(
        "pytest_rknpu.cli.doctor.examination.toolkit", lambda status: ok("toolkit", HOST, "not looked at")
    )
    monkeypatch.setattr("pytest_rknpu.toolchain.status.require_toolkit", lambda: "9.9.9")
    monkeypatch.setattr("pytest_rknpu.session.builds.own_build", _build)
    return tmp_path


def _runs(folder: Path) -> None:
    samples = processes(np.random.default_rng(43))
    write(folder / "good", run_of(timed(samples), result()))
    write(folder / "slow", run_of(timed([1.1 * one for one in samples]), result(), run_id="slow"))
    write(folder / "other", run_of(result(board="rk-two")))
    write(folder / "green", run_of(result(), run_id="green", started="2026-01-01T00:00:00+00:00"))
    red = run_of(result(outcome=Outcome.FAIL), run_id="red", started="2026-01-02T00:00:00+00:00")
    write(folder / "red", red)
    torn = write(folder / "torn", run_of(timed(samples), result(), run_id="torn")) / "results.jsonl"
    torn.write_bytes(torn.read_bytes()[:-40])
    run = small()
    passed = tuple(test for test in run.tests if test.outcome in (Outcome.PASS, Outcome.SKIP))
    handed = write(folder / "handed", Results(run.run, passed, torn=False))
    write_junit(handed / "junit", run.run, passed)
    (handed / "boards.json").write_text("[]\n")


def _build(soc: str, model: object) -> object:
    """A toolkit that builds for the RK3588 alone."""
    from test_compile_command import LOGS, fake_build

    if soc != "rk3588":
        raise ToolkitError("no")
    return fake_build(Path(), LOGS / "toolchain" / "logs" / "attention-int8-rk3588-2.5.0.log", soc).build


@pytest.mark.parametrize(
    ("code", "line"),
    [pytest.param(code, line, id=line) for codes in CASES.values() for code, line in codes.items()],
)
def test_exit_code(rknpu, files: Path, code: int, line: str) -> None:
    answer = rknpu(*line.split())
    assert answer.code == code, answer.out + answer.err
    assert (code == 2) is (answer.err.startswith("rknpu: ") and answer.err.count("\n") == 1)
    assert bool(answer.out) is (code != 2)


def test_the_documented_codes_are_these() -> None:
    """`run` becomes pytest, whose codes tests/cli/test_run_command.py looks at."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `([a-z-]+)` \| (\d) \|", section, re.MULTILINE)
    assert documented == [(command, str(code)) for command, codes in CASES.items() for code in codes]


def test_every_command_is_here() -> None:
    names = {one.name or getattr(one.callback, "__name__", "") for one in application.registered_commands}
    assert names == {*CASES, "run"}


@pytest.mark.parametrize("command", ["", *CASES, "run"])
def test_every_help_has_an_example(rknpu, command: str) -> None:
    answer = rknpu(*command.split(), "--help")
    assert (answer.code, answer.err) == (0, "")
    assert f"Example: rknpu {command}".strip() in answer.out


@pytest.mark.parametrize("command", sorted(CASES.keys() - {"init", "report", "bundle", "schema"}))
def test_what_a_script_would_read_is_there_as_json(rknpu, files: Path, command: str) -> None:
    import json

    answer = rknpu(*CASES[command][0].split(), "--json")
    assert answer.code == 0
    json.loads(answer.out)
    section = PAGE.read_text(encoding="utf-8")
    assert f"| `{command}` |" in section.partition("\n## JSON")[2] or f"\n### {command} --json\n" in section

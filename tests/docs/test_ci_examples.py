"""The CI examples of docs/farms.md, run: what they type, what is kept of a green and of a red job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.ci_systems import Job, Machine, github, gitlab, jenkins
from docs.command_words import complaint
from markdown_blocks import CLONE, blocks

PAGE = CLONE / "docs" / "farms.md"
SYSTEMS: dict[str, tuple[str, Callable[[str, Machine], Job]]] = {
    "github": ("runs-on:", github),
    "gitlab": ("artifacts:\n", gitlab),
    "jenkins": ("pipeline {", jenkins),
}
FARM = "".join(
    f'[[board]]\nname = "shelf-{number}"\nsoc = "rk3588"\nruntime = "emulator"\n\n' for number in range(2)
)
# All that is left out of the run: the rest of the suites.
NARROWED = "--requirement SYNC-06 --rknpu-effort quick -k ends_within -p no:hypothesispytest"
REPORT = {"report/results.jsonl", "report/report.html", "report/junit/rk3588.xml"}


def example(system: str) -> str:
    mark, _ = SYSTEMS[system]
    (text,) = (block.text for block in blocks(PAGE) if mark in block.text)
    return text


def run(system: str, folder: Path, more: str = "") -> tuple[Job, Machine]:
    machine = Machine(folder, {"farm.toml": FARM}, f"{NARROWED} {more}")
    return SYSTEMS[system][1](example(system), machine), machine


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_red_job_keeps_its_results(system: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    job, machine = run(system, tmp_path, "--rknpu-fault sync-range-rounded-down")
    assert not job.green, job.output
    assert job.kept >= REPORT, job.output
    shown = job.junit or {name for name in job.kept if name.startswith("report/junit/")}
    assert shown == {name for name in REPORT if name.endswith(".xml")}
    for name in shown:
        root = ElementTree.parse(machine.workspace / name).getroot()
        assert len(list(root.iter("failure"))) == 1
        assert {prop.get("name") for prop in root.iter("property")} >= {"requirement", "evidence", "soc"}
    assert job.installed == ("pip install pytest-rknpu[toolkit]", "pipx install labgrid>=25")
    assert complaint(job.installed[0].split(), pytestconfig) is None


def test_a_green_job_is_green(tmp_path: Path) -> None:
    job, _ = run("github", tmp_path)
    assert job.green, job.output
    assert job.kept >= REPORT
    assert "SYNC-06      pass" in job.output


@pytest.mark.parametrize(
    ("system", "old", "new"),
    [
        ("github", "if: always()", "if: success()"),
        ("gitlab", "when: always", "when: on_success"),
        ("jenkins", "always {", "success {"),
    ],
)
def test_an_example_that_forgets_red_jobs_is_noticed(
    system: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, {"farm.toml": FARM}, "")
    monkeypatch.setattr(machine, "shell", lambda *_: False)
    report = machine.workspace / "report"
    report.mkdir()
    (report / "results.jsonl").touch()
    text = example(system)
    assert SYSTEMS[system][1](text, machine).kept == {"report/results.jsonl"}
    assert old in text
    forgetful = text.replace(old, new)
    if system == "jenkins":
        with pytest.raises(ValueError, match="not enough values"):
            jenkins(forgetful, machine)
    else:
        assert SYSTEMS[system][1](forgetful, machine).kept == frozenset()

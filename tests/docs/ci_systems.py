"""As much of three CI systems as the examples of docs/farms.md need: a job's steps, and what is kept of it.

What a system does by itself (checkout, artifacts, reports) is a stand-in here; what a job types into a shell
is run as it stands, by the shell and with the options that the system uses.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from docs.prepared import LONGEST_S, environment

PIP = """\
#!/bin/sh
# pip install: notes what it is asked for; what it would install is linked into the environment.
echo "pip $*" >> "$INSTALLED"
for script in rknpu pytest; do ln -s {bin}/$script "$(dirname "$0")/$script"; done
"""
PYTHON3 = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin" && cp {pip} "$3/bin/pip"
"""
PIPX = '#!/bin/sh\necho "pipx $*" >> "$INSTALLED"\n'


@dataclass(frozen=True)
class Job:
    """How a job ended: whether it is green, files that were kept, and JUnit files that the system would show.

    Both are names below the job's folder. ``installed`` are the lines that pip and pipx were called with.
    """

    green: bool
    kept: frozenset[str]
    junit: frozenset[str]
    installed: tuple[str, ...]
    output: str


class Machine:
    """The runner of a job: a folder, and a PATH on which installing is a stand-in."""

    def __init__(self, folder: Path, checkout: Mapping[str, str], narrowed: str) -> None:
        self.workspace, self.bin = folder / "workspace", folder / "bin"
        self._checkout, self._narrowed = checkout, narrowed
        self.output = ""
        for made in (self.workspace, self.bin, folder / "home"):
            made.mkdir()
        self._installed = folder / "installed"
        self._installed.touch()
        (folder / "pip").write_text(PIP.format(bin=Path(sys.executable).parent))
        scripts = {"python3": PYTHON3.format(python=sys.executable, pip=folder / "pip"), "pipx": PIPX}
        for name, text in scripts.items():
            (self.bin / name).write_text(text)
        for script in (folder / "pip", *self.bin.iterdir()):
            script.chmod(0o755)

    def check_out(self) -> None:
        for name, text in self._checkout.items():
            (self.workspace / name).write_text(text, encoding="utf-8")

    def shell(self, command: list[str], script: str, variables: Mapping[str, str]) -> bool:
        """Run a script; whether it succeeded."""
        own = environment(self.workspace.parent, self._narrowed)
        own = {**own, "PATH": f"{self.bin}:/usr/bin:/bin", "INSTALLED": str(self._installed), **variables}
        ended = subprocess.run(
            command,
            input=script,
            cwd=self.workspace,
            env=own,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONGEST_S,
            check=False,
        )
        self.output += ended.stdout
        return ended.returncode == 0

    def job(self, green: bool, kept: Iterator[Path], junit: Iterator[Path]) -> Job:
        installed = tuple(self._installed.read_text().splitlines())
        return Job(green, self._names(kept), self._names(junit), installed, self.output)

    def files(self, pattern: str) -> Iterator[Path]:
        """What a path or a pattern of an example means: a folder is all that is in it."""
        for found in self.workspace.glob(pattern):
            yield from found.rglob("*") if found.is_dir() else [found]

    def _names(self, files: Iterator[Path]) -> frozenset[str]:
        return frozenset(str(file.relative_to(self.workspace)) for file in files if file.is_file())


def github(text: str, machine: Machine) -> Job:
    """A workflow with one job. A step after a failed one runs only if it says ``always()``."""
    workflow: dict[Any, Any] = yaml.safe_load(text)
    assert workflow.pop(True) == "push"  # what YAML 1.1 makes of the word on
    ((_, job),) = workflow["jobs"].items()
    assert set(job) == {"runs-on", "env", "steps"}
    green, uploaded = True, list[Path]()
    for step in job["steps"]:
        if not green and step.get("if") != "always()":
            continue
        if "run" in step:
            green = machine.shell(["bash", "-e"], step["run"], job["env"]) and green
        elif step["uses"].startswith("actions/checkout@"):
            machine.check_out()
        else:
            assert re.match(r"actions/upload-artifact@v\d", step["uses"])
            assert step["with"]["name"]
            uploaded = list(machine.files(step["with"]["path"]))
    return machine.job(green, iter(uploaded), iter(()))


def gitlab(text: str, machine: Machine) -> Job:
    """One job. Its artifacts are kept by ``when``, its JUnit reports always."""
    ((_, job),) = yaml.safe_load(text).items()
    assert set(job) == {"tags", "variables", "script", "artifacts"}
    machine.check_out()
    green = machine.shell(["bash", "-eo", "pipefail"], "\n".join(job["script"]), job["variables"])
    artifacts = job["artifacts"]
    keeps = green or artifacts["when"] == "always"
    kept = (file for path in artifacts["paths"] if keeps for file in machine.files(path))
    return machine.job(green, kept, machine.files(artifacts["reports"]["junit"]))


def jenkins(text: str, machine: Machine) -> Job:
    """A declarative pipeline with one stage. What stands in ``post { always { } }`` happens in any case."""
    assert text.count("{") == text.count("}")
    (script,) = re.findall(r"sh '''\n(.*?)'''", text, re.DOTALL)
    (variables,) = re.findall(r"environment \{ (\w+) = '([^']*)' \}", text)
    (after,) = re.findall(r"post \{\s*always \{(.*?)\}", text, re.DOTALL)
    machine.check_out()
    green = machine.shell(["sh", "-xe"], textwrap.dedent(script), dict([variables]))
    (junit,) = re.findall(r"^ *junit testResults: '([^']*)', keepProperties: true$", after, re.MULTILINE)
    (archived,) = re.findall(r"^ *archiveArtifacts artifacts: '([^']*)'$", after, re.MULTILINE)
    return machine.job(green, machine.files(archived), machine.files(junit))

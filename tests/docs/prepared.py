"""The folder that a page's commands are run in, and how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from compare.make import processes, run_of, timed, write

from pytest_rknpu import models

CLONE = Path(__file__).parents[2]
LONGEST_S = 300

MY_BOARD = '\n[[board]]\nname = "my-board"\nsoc = "rk3588"\nruntime = "emulator"\n'
FARM = "".join(
    f'[[board]]\nname = "shelf-{number}"\nsoc = "rk3588"\nruntime = "emulator"\n'
    'pool = "rk3588-bsp-1.3"\ntags = { site = "lab-2" }\n\n'
    for number in range(2)
)
WAIVERS = """\
[[waiver]]
requirement = "SYNC-07"
board = "emu-rk3588"
message = "neighbour .* lost"
reason = "unaligned import"
link = "https://tracker.example/NPU-71"
expires = {expires}
"""


def environment(folder: Path, narrowed: str = "") -> dict[str, str]:
    """Variables under which a command of the documentation runs: a home, leases and a PATH of its own."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "RKNPU_", "LG_"))
    }
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
        "HOME": str(folder / "home"),
        "RKNPU_LEASE_DIR": str(folder / "home" / "leases"),
        "PYTEST_ADDOPTS": f"-p no:cacheprovider {narrowed}",
        "COLUMNS": "100",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def call(command: str, folder: Path, narrowed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command line as a user would, by bash; stderr is told together with stdout."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(folder, narrowed),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


def make_reports(folder: Path) -> None:
    """What commands on runs are tried with: a green run, one with a failure, and a timed one made by hand."""
    times = processes(np.random.default_rng(7))
    write(folder / "timed", run_of(timed(times, board="emu-rk3588")))
    for name, fault, exits in (("rknpu-report", "", 0), ("with-a-fault", "sync-range-rounded-down", 1)):
        options = f"--rknpu-seed 7 --rknpu-report {name}" + (f" --rknpu-fault {fault}" if fault else "")
        ended = call(f"rknpu run --board emu-rk3588 --requirement SYNC-06 {options}", folder)
        assert ended.returncode == exits, ended.stdout


def make_model(folder: Path) -> None:
    """A model and samples to quantise it on, and a ``[[model]]`` of lab.toml that names them."""
    model = models.load("digits_cnn")
    (folder / "model.onnx").write_bytes(model.float_onnx)
    np.savez(folder / "samples.npz", input=model.calibration)
    table = '[[model]]\nname = "mobilenet-v2"\npath = "model.onnx"\ncalibration = "samples.npz"\n'
    (folder / "lab.toml").write_text(f"{MY_BOARD}\n{table}", encoding="utf-8")


def prepare(page: str, folder: Path, reports: Path, today: Mapping[str, str]) -> None:
    """Make the folder of a page: its environment in .venv and, but for the tutorial, a clone and runs."""
    (folder / "home").mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    if page == "tutorial.md":
        (folder / "home" / "npu-env").symlink_to(sys.prefix)
        return
    for entry in CLONE.iterdir():
        if entry.name != "boards.toml" and not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    for name in ("rknpu-report", "with-a-fault"):
        (folder / name).unlink(missing_ok=True)  # what somebody left in the clone
        shutil.copytree(reports / name, folder / name)
    shutil.copytree(reports / "rknpu-report", folder / "last-good")
    shutil.copytree(reports / "timed", folder / "timed")
    shipped = (CLONE / "boards.toml").read_text(encoding="utf-8")
    boards = {"README.md": "", "farms.md": FARM, "probe.md": shipped + MY_BOARD}.get(page, shipped)
    if boards:  # README has `rknpu init`
        (folder / "boards.toml").write_text(boards, encoding="utf-8")
    (folder / "lab.toml").write_text(MY_BOARD, encoding="utf-8")
    (folder / "reports").symlink_to(reports)
    if page == "compare.md":  # two runs in which silicon was timed, as `rknpu suggest-budgets` wants it
        for name in ("last-good", "rknpu-report"):
            shutil.rmtree(folder / name)
            shutil.copytree(reports / "timed", folder / name)
    if page == "command-line.md":
        make_model(folder)
    (folder / "mustpass.txt").write_text("SYNC-06\n", encoding="utf-8")
    (folder / "waivers.toml").write_text(WAIVERS.format(**today), encoding="utf-8")

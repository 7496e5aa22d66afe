"""The command that runs one test of a run again."""

from __future__ import annotations

import os
import shlex

import pytest

from pytest_rknpu.farm.run import Run


def replay_command(run: Run, nodeid: str, config: pytest.Config) -> str:
    """The command that runs one test again, with the same seed, from the folder of this run."""
    here = config.invocation_params.dir
    path, separator, rest = nodeid.partition("::")
    if (config.rootpath / path).exists():
        words = ["pytest", f"{os.path.relpath(config.rootpath / path, here)}{separator}{rest}"]
    else:  # `rknpu run`: node ids are relative to the shipped suites, and the seed depends on them
        words = ["rknpu", "run", "--rknpu-only", nodeid]
    if run.boards_file is not None:
        words += ["--boards", os.path.relpath(run.boards_file, here)]
    words += ["--rknpu-seed", str(run.origin.seed)]
    if run.effort != "normal":
        words += ["--rknpu-effort", str(run.effort)]
    if run.latency_model is not None:
        words += ["--rknpu-latency-model", run.latency_model]
    if run.per_soc:
        words += ["--rknpu-per", "soc"]
    chosen = (("--board", run.globs), ("--soc", run.socs), ("--tag", run.tags), ("--rknpu-fault", run.faults))
    for option, values in chosen:
        for value in values:
            words += [option, value]
    return shlex.join(words)

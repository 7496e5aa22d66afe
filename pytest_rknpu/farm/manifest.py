"""What xdist workers tell their controller about the collection, beyond the node ids that xdist sends.

The controller collects nothing itself, yet has to deal tests out by board, write a result for a test whose
worker died in it, and refuse a run whose boards cannot be used. Each worker leaves a file in a folder that
the controller named. A worker on another host leaves it there in vain; then the node ids have to do.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Planned:
    """A collected test that will get a result. ``board`` is None where it is about none."""

    board: str | None
    requirement: tuple[str, ...]
    seed: int


@dataclass(frozen=True)
class Manifest:
    """The tests by node id; ``problem`` says why the boards cannot be used, if so."""

    tests: Mapping[str, Planned]
    problem: str | None


_ATTEMPTS = 10

NOTHING = Manifest({}, None)


def write_manifest(folder: Path, worker: str, manifest: Manifest) -> None:
    """Leave the manifest of one worker, whole or not at all. The folder is this user's own."""
    table = {
        "tests": {nodeid: asdict(planned) for nodeid, planned in manifest.tests.items()},
        "problem": manifest.problem,
    }
    text = json.dumps(table)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            unfinished = folder / f".{worker}"
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, folder / f"{worker}.json")
            return
        except (FileNotFoundError, FileExistsError):  # the controller took the folder with its last manifest
            if attempt == _ATTEMPTS:
                raise


def take_manifest(folder: Path, worker: str) -> Manifest | None:
    """The manifest of one worker, or None where it left none.

    It is removed, and so is the folder when it is empty: a run that is killed later leaves nothing behind.
    """
    path = folder / f"{worker}.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    with contextlib.suppress(OSError):
        path.unlink()
        folder.rmdir()
    tests = {
        nodeid: Planned(planned["board"], tuple(planned["requirement"]), planned["seed"])
        for nodeid, planned in table["tests"].items()
    }
    return Manifest(tests, table["problem"])

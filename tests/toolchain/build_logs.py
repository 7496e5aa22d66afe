"""The stored logs (``logs/``, made by ``logs/make.py``), read for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_rknpu.toolchain.build_log import BuildLog, parse_build_log
from pytest_rknpu.toolchain.fused_graph import FusedGraph, Node

FOLDER = Path(__file__).parent / "logs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.log"))


@dataclass(frozen=True)
class Stored:
    """A log as text and parsed, the fused graph it refers to, and how it was made."""

    name: str
    text: str
    log: BuildLog
    graph: FusedGraph
    provenance: dict[str, str]


@cache
def stored(name: str) -> Stored:
    text = (FOLDER / f"{name}.log").read_text(encoding="utf-8")
    graph = json.loads((FOLDER / f"{name}.graph.json").read_text(encoding="utf-8"))
    nodes = tuple(Node(n, op, tuple(inputs), tuple(outputs)) for n, op, inputs, outputs in graph["nodes"])
    provenance = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))[name]
    fused = FusedGraph(tuple(graph["inputs"]), tuple(graph["outputs"]), nodes)
    return Stored(name, text, parse_build_log(text), fused, provenance)

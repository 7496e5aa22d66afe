"""Builds the logs of this folder: ``python tests/toolchain/logs/make.py``.

Writes those of ``BUILDS`` that name the running interpreter's toolkit version; run it once per version, in a
virtual environment each. Paths of the building machine are taken out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import zoo

from pytest_rknpu import models
from pytest_rknpu.sparsity import Mode, prune_onnx
from pytest_rknpu.toolchain import CompileOptions, compile_model, toolkit_status
from pytest_rknpu.toolchain.fused_graph import read_fused_graph

FOLDER = Path(__file__).parent
PROVENANCE = FOLDER / "provenance.json"


@dataclass(frozen=True)
class Build:
    """``variant``: int8, float16, dynamic (two input sizes), pruned (sparse_infer), compressed (weights)."""

    model: str
    soc: str
    variant: str
    versions: tuple[str, ...]

    def name(self, version: str) -> str:
        return f"{self.model}-{self.variant}-{self.soc}-{version}"


NEW, BOTH, ALL = ("2.5.0",), ("2.3.2", "2.5.0"), ("2.2.0", "2.3.0", "2.3.2", "2.5.0")
BUILDS = (
    Build("digits_cnn", "rk3588", "int8", ALL),
    Build("probe_chain", "rv1126b", "int8", BOTH),
    Build("probe_wide", "rk3576", "int8", BOTH),
    Build("probe_wide", "rv1106", "int8", BOTH),
    Build("detector", "rk3588", "int8", BOTH),
    Build("detector", "rv1126b", "int8", BOTH),
    Build("detector", "rk3566", "float16", BOTH),
    Build("attention", "rk3588", "int8", BOTH),
    Build("attention", "rv1106", "int8", BOTH),
    Build("attention", "rk3576", "float16", BOTH),
    Build("mobile", "rk3588", "dynamic", BOTH),
    Build("mobile", "rk3576", "int8", BOTH),
    Build("mobile", "rk3566", "float16", BOTH),
    Build("recurrent", "rk3588", "int8", BOTH),
    Build("recurrent", "rk3576", "float16", BOTH),
    Build("recurrent", "rv1106", "int8", BOTH),
    Build("dense", "rk3588", "int8", BOTH),
    Build("dense", "rv1106", "int8", BOTH),
    Build("unet", "rk3588", "float16", BOTH),
    Build("unet", "rk3576", "pruned", BOTH),
    Build("unet", "rv1126b", "pruned", BOTH),
    Build("wide", "rk3576", "pruned", BOTH),
    Build("wide", "rv1126b", "pruned", NEW),
    Build("wide", "rk3576", "compressed", NEW),
    Build("operators", "rk3588", "int8", NEW),
    Build("operators", "rk3576", "float16", NEW),
    Build("names", "rk3588", "int8", NEW),
    Build("constant_free", "rk3576", "int8", NEW),
    Build("large", "rk3566", "int8", NEW),
    Build("grouped", "rk3588", "int8", BOTH),
    Build("grouped", "rk3576", "int8", BOTH),
    Build("grouped", "rv1106", "int8", NEW),
    Build("grouped", "rk3566", "float16", NEW),
)


def content_of(build: Build) -> bytes:
    known = build.model in models.names()
    content = models.load(build.model).float_onnx if known else zoo.onnx_of(build.model)
    if build.variant != "pruned":
        return content
    # RV1126B engages along output channels only; the wide model takes 16:4.
    mode = Mode.OUTPUT if build.soc == "rv1126b" else Mode.INPUT
    return prune_onnx(
        content, Mode.INPUT_THEN_OUTPUT if build.model == "wide" and mode is Mode.INPUT else mode
    )[0]


def options_of(build: Build, content: bytes) -> CompileOptions:
    shape = [
        d.dim_value for d in onnx.load_model_from_string(content).graph.input[0].type.tensor_type.shape.dim
    ]
    samples = np.random.default_rng(11).standard_normal((4, *shape[1:])).astype(np.float32)
    config: dict[str, Any] = {}
    if build.variant == "dynamic":
        config["dynamic_input"] = [[[1, 3, 32, 32]], [[1, 3, 64, 64]]]
    if build.variant == "compressed":
        config["compress_weight"] = True
    return CompileOptions(
        build.soc,
        None if build.variant == "float16" else samples,
        sparse_infer=build.variant == "pruned",
        config=config,
    )


def scrubbed(log: str, folder: Path) -> str:
    """The log without the paths of this machine. Tensor names look like paths too, so only known ones go."""
    for path, word in [(str(folder), "<cache>"), (sys.prefix, "<python>"), (str(Path.home()), "<home>")]:
        log = log.replace(path, word)
    for path in sorted({p for p in sys.path if len(p) > 4}, key=len, reverse=True):
        log = log.replace(path, "<python>")
    log = re.sub(r"<cache>/toolkit/unfinished/[0-9a-f]{64}/work", "<folder>", log)
    return re.sub(r"/tmp/[\w./-]+", "<temporary>", log)


def make(build: Build, folder: Path) -> dict[str, Any]:
    content = content_of(build)
    compiled = compile_model(content, options_of(build, content))
    name = build.name(compiled.toolkit_version)
    log = compiled.log.read_text(encoding="utf-8", errors="replace")
    (FOLDER / f"{name}.log").write_text(scrubbed(log, folder), encoding="utf-8")
    assert compiled.fused_graph is not None
    graph = dataclasses.asdict(read_fused_graph(compiled.fused_graph.read_bytes()))
    nodes = ",\n ".join(json.dumps(list(node.values())) for node in graph.pop("nodes"))
    text = f'{json.dumps(graph)[:-1]}, "nodes": [\n {nodes}\n]}}\n'
    (FOLDER / f"{name}.graph.json").write_text(text, encoding="utf-8")
    return {
        "toolkit": compiled.toolkit_version,
        "onnx_sha256": hashlib.sha256(content).hexdigest(),
        **{key: value for key, value in dataclasses.asdict(build).items() if key != "versions"},
    }


def main() -> None:
    known = json.loads(PROVENANCE.read_text(encoding="utf-8")) if PROVENANCE.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        os.environ["RKNPU_CACHE_DIR"] = name
        version = toolkit_status().version
        for build in BUILDS:
            if version in build.versions:
                known[build.name(version)] = make(build, Path(name))
                PROVENANCE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What RKNN-Toolkit2 really said: build logs of the sparse probes, and the ratios of four versions."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from pytest_rknpu.models import load
from pytest_rknpu.models.recipes import sparse_probes
from pytest_rknpu.sparsity import Mode, prune_all, prune_onnx
from pytest_rknpu.toolchain import Plan, parse_build_log

FOLDER = Path(__file__).parent


@cache
def observed() -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    """SparseRatio by toolkit version, SoC, network and layer; RV1126B is unknown to 2.2.0 and 2.3.0."""
    table: dict[str, dict[str, dict[str, dict[str, str]]]] = json.loads(
        (FOLDER / "observed.json").read_text()
    )
    return table


@cache
def network(name: str) -> bytes:
    """A network of ``observed``: its number is the mode; "half" was built in float16."""
    if name == "dense":
        return sparse_probes.aligned().onnx
    if name == "unaligned":
        return load("digits_unaligned").float_onnx
    kind, mode = name[:-1], Mode(int(name[-1]))
    if kind == "beyond":
        return prune_all(sparse_probes.beyond().onnx, mode)
    probe = sparse_probes.flattened() if kind == "flat" else sparse_probes.aligned()
    return prune_onnx(probe.onnx, mode)[0]


@cache
def log_text(name: str) -> str:
    """The tables of a build log of 2.5.0, ``aligned2-rk3576`` say."""
    return (FOLDER / "logs" / f"{name}-2.5.0.log").read_text()


def plan_of(name: str, *replacements: tuple[str, str], **ratios: str) -> Plan:
    """The plan of a log that was made to say other things: texts, or the SparseRatio of layers by name."""
    text = log_text(name)
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    for layer, ratio in ratios.items():
        text, count = re.subn(
            rf"\d+%(\(\w+\))?(?=.*Conv\w*:{layer}(#\d+)?\s*$)", ratio, text, flags=re.MULTILINE
        )
        assert count == 1
    return parse_build_log(text).plan

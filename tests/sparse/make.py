"""Asks the installed RKNN-Toolkit2 anew: ``python tests/sparse/make.py`` from the root of a clone.

Writes its version's part of ``observed.json``, and with 2.5.0 the logs in ``logs/``. What is stored was made
in an environment for each of 2.2.0, 2.3.0, 2.3.2 and 2.5.0 (x86-64 Linux, Python 3.11).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from pytest_rknpu import models
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.models.recipes import sparse_probes
from pytest_rknpu.sparsity.rows import shown_by
from pytest_rknpu.toolchain import CompileOptions, compile_model, parse_build_log, toolkit_status

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))
SOCS = ("rk3576", "rv1126b")
STORED = ("aligned2-rk3576", "aligned0-rk3576", "aligned0-rv1126b", "beyond1-rk3576", "dense-rk3576")
#: What tests read: the tables and their totals, the patterns that were found, and the versions.
KEPT = re.compile(
    r"^(D RKNN: \S+ (\d+ |-|\s|Total|ID )|I rknn-toolkit2 version|I RKNN: .*(librknnc|sparse type))"
)

CALIBRATION = {
    "aligned": sparse_probes.aligned().calibration,
    "beyond": sparse_probes.beyond().calibration,
    "flat": sparse_probes.flattened().calibration,
    "dense": sparse_probes.aligned().calibration,
    "unaligned": models.load("digits_unaligned").calibration[:16],
    "half": None,
}


def main() -> None:
    from sparse.real_logs import network, observed

    table, version = observed(), toolkit_status().version
    assert version is not None
    own = {}
    for soc in SOCS:
        for name in table["2.5.0"]["rk3576"]:
            options = CompileOptions(soc, CALIBRATION[name.rstrip("0123")], sparse_infer=True)
            try:
                text = compile_model(network(name), options).log.read_text(errors="replace")
            except ToolkitError as error:
                print(f"{name}, {soc}: {error}")
                continue
            shown = shown_by(network(name), parse_build_log(text).plan.layers)
            own.setdefault(soc, {})[name] = {one.layer.name: one.ratio.value for one in shown}
            if version == "2.5.0" and f"{name}-{soc}" in STORED:
                lines = [line.rstrip() for line in text.splitlines() if KEPT.match(line)]
                (FOLDER / "logs" / f"{name}-{soc}-2.5.0.log").write_text("\n".join(lines) + "\n")
    text = json.dumps({**table, version: own}, indent=1, sort_keys=True)
    (FOLDER / "observed.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

"""ACC-07: a comparison that fails says where. Shown on the board's own outputs, a stale line planted."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import HarnessError
from pytest_rknpu.measure.localise import LINE_BYTES, element_offsets, locate
from pytest_rknpu.session import Npu
from pytest_rknpu.session.inference import infer
from pytest_rknpu.session.layout import memory_layout


@pytest.mark.requirement("ACC-07")
@pytest.mark.parametrize("name", ["probe_pointwise", "probe_wide", "probe_stride"])
def test_a_stale_cache_line_is_found_where_it_is(npu: Npu, name: str) -> None:
    """Each cache line of the native output in turn keeps the bytes of another inference.

    The difference is then in that line and in no other, whatever layout and stride the runtime reports.
    """
    model, tensor = models.load(name), npu.model(name).description.outputs[0]
    fresh, old = infer(npu, model, model.calibration[:2])[0]
    layout = memory_layout(tensor.native, tensor.shape)
    lines = element_offsets(fresh.shape, layout) // LINE_BYTES
    for line in np.unique(lines):
        stale = np.where(lines == line, old, fresh)
        found = locate(fresh[np.newaxis], stale[np.newaxis], 0.0, layout)
        if found is None:
            raise HarnessError(f"{name}: line {line} does not differ between two inferences")
        if [(part.first, part.last) for part in found.lines] != [(line, line)]:
            raise HarnessError(f"{name}: planted in line {line}, found in {found.lines}")
    npu.record.measure("cache lines planted and found", len(np.unique(lines)))

"""SPARSE-07 on a clock: a sparse build that is slower fails; the suite's own test on made-up times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sparse.suite_under_test import suite

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.session.timing import Comparison
from pytest_rknpu.verdict import ItemRecord

TIME = suite("time")


@pytest.mark.parametrize(
    ("slower", "disturbed", "expected"),
    [(0.9, [], None), (1.0, [], None), (1.1, [], ConformanceFailure), (1.0, ["throttled"], Inconclusive)],
)
def test_a_slower_sparse_build_fails(
    monkeypatch: pytest.MonkeyPatch, slower: float, disturbed: list[str], expected: type[Exception] | None
) -> None:
    draw = np.random.default_rng(7)
    tables = tuple(
        np.stack([slower * (10 + 0.05 * draw.standard_normal(100)), 10 + 0.05 * draw.standard_normal(100)], 1)
        for _ in range(TIME.PROCESSES)
    )
    loaded = SimpleNamespace(description=SimpleNamespace(inputs=()))
    npu: Any = SimpleNamespace(
        model=lambda name, *, sparse_infer: loaded,
        record=ItemRecord("sparse", ("SPARSE-07",), 1),
        soc=None,
        session=SimpleNamespace(board=SimpleNamespace(name="lab")),
    )
    latency: Any = SimpleNamespace(npu=npu, disturbances=lambda readings: disturbed)
    monkeypatch.setattr(TIME, "compare_calls", lambda *_, **__: Comparison(("sparse", "dense"), tables, ()))
    monkeypatch.setattr(TIME, "record_comparison", lambda *_: None)

    def run() -> None:
        TIME.test_sparse_runs_are_not_slower(
            latency, SimpleNamespace(rounds=lambda n: n), "digits_aligned_grid"
        )

    if expected is None:
        run()
    else:
        with pytest.raises(expected):
            run()

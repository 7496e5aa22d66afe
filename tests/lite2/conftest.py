"""Emulated boards with RKNN-Toolkit-Lite2, opened once for a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lite2.lite_boards import NpuWith, boards_with_lite


@pytest.fixture(scope="module")
def npu_with() -> Iterator[NpuWith]:
    """``npu_with(fault)``: the NPU of an emulated board whose Lite2 has that fault."""
    with boards_with_lite() as npu:
        yield npu

"""Throughput that the vendor publishes for well-known models, as a first budget where nothing was measured
yet.

Frames per second of int8 models on one NPU core, from the performance table of airockchip/rknn_model_zoo
v2.3.2. They are no promise for a board: clocks, memory and runtime versions differ, and how they were
measured is not said in full. A budget made from them is therefore looser by a margin, and to be replaced by
one from a measured run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MEDIAN_MARGIN = 1.25
"""The budget for p50 is the published time per frame times that."""
TAIL_MARGIN = 1.5
"""The budget for p99: nothing is published about the spread of single runs."""

SOURCE = "performance table of airockchip/rknn_model_zoo v2.3.2, int8, one core"

PUBLISHED_FPS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "mobilenetv2": {"rk3566": 180.7, "rk3568": 180.7, "rk3562": 281.3, "rk3588": 450.7, "rk3576": 467.0},
        "resnet50": {"rk3566": 37.9, "rk3568": 37.9, "rk3562": 54.9, "rk3588": 110.1, "rk3576": 99.0},
        "yolov5s_relu": {"rk3566": 25.5, "rk3568": 25.5, "rk3562": 33.2, "rk3588": 66.1, "rk3576": 65.0},
        "yolov5s": {"rk3566": 19.3, "rk3568": 19.3, "rk3562": 23.6, "rk3588": 48.4, "rk3576": 57.5},
        "yolov8n": {"rk3566": 34.0, "rk3568": 34.0, "rk3562": 40.9, "rk3588": 73.5, "rk3576": 90.2},
        "RetinaFace_mobile320": {
            "rk3566": 156.4,
            "rk3568": 156.4,
            "rk3562": 300.8,
            "rk3588": 227.2,
            "rk3576": 470.5,
        },
        "ppocrv4_det": {"rk3566": 22.1, "rk3568": 22.1, "rk3562": 28.0, "rk3588": 50.7, "rk3576": 64.3},
    }
)
"""Model -> SoC -> frames per second."""


def suggested_ms(frames_per_second: float) -> tuple[float, float]:
    """(p50, p99) in ms for a published throughput, with margins, rounded up to 0.1 ms (1 ms from 10 on)."""
    published = 1000.0 / frames_per_second
    return _rounded_up(published * MEDIAN_MARGIN), _rounded_up(published * TAIL_MARGIN)


def _rounded_up(milliseconds: float) -> float:
    step = 0.1 if milliseconds < 10 else 1.0
    whole = -(-round(milliseconds / step, 6) // 1)
    return round(whole * step, 1)

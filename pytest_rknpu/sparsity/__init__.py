"""Structured sparsity (guide 4.1.7): pruning as pure functions, and what the compiler makes of it."""

from __future__ import annotations

from pytest_rknpu.sparsity.eligibility import INFERENCE, PRUNING, Selection, reasons
from pytest_rknpu.sparsity.layers import Layer
from pytest_rknpu.sparsity.masks import mask, mask_along, prune
from pytest_rknpu.sparsity.modes import MODES, Axis, Kind, Mode
from pytest_rknpu.sparsity.pattern import Pattern, sparsity_of
from pytest_rknpu.sparsity.pruning import LayerReport, patterns, prune_all, prune_onnx

__all__ = [
    "INFERENCE",
    "MODES",
    "PRUNING",
    "Axis",
    "Kind",
    "Layer",
    "LayerReport",
    "Mode",
    "Pattern",
    "Selection",
    "mask",
    "mask_along",
    "patterns",
    "prune",
    "prune_all",
    "prune_onnx",
    "reasons",
    "sparsity_of",
]

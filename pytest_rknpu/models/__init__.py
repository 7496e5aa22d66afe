"""The models that the suites use: small ONNX files with where they come from and how to rebuild them.

``names()`` lists them, ``load(name)`` reads one and checks each file's hash against ``catalogue.json``.
"""

from __future__ import annotations

from pytest_rknpu.models.store import Labelled, Model, Provenance, load, load_labelled, names

__all__ = ["Labelled", "Model", "Provenance", "load", "load_labelled", "names"]

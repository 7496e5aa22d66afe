"""The `rknpu` command, as the tests of the history call it."""

from __future__ import annotations

from cli.conftest import rknpu, rknpu_process

__all__ = ["rknpu", "rknpu_process"]

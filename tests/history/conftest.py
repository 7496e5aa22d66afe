"""The `rknpu` command, as the tests of the history call it."""

from __future__ import annotations

from cli.conftest import rknpu

__all__ = ["rknpu"]

"""The `rknpu` command, as its own tests call it."""

from __future__ import annotations

from cli.conftest import rknpu

__all__ = ["rknpu"]

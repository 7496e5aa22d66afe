"""How many inputs a property is tried with: ``RKNPU_TEST_EXAMPLES=20000 pytest ...`` for a long search."""

from __future__ import annotations

import os


def examples(normal: int) -> int:
    """``normal`` ones, or as many as the environment asks for."""
    return int(os.environ.get("RKNPU_TEST_EXAMPLES") or normal)

"""What is new in a kernel's messages about its NPU (VER-05)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_COMPLAINT = re.compile(r"error|fail|time[d ]*out|soft reset|abort|disabling irq", re.IGNORECASE)


def new_complaints(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Messages of ``after`` that tell of trouble and were not there, or not so often, ``before``.

    Both are the last messages about the NPU, without their times: the same words can come again.
    """
    new = Counter(after) - Counter(before)
    return [line for line in new.elements() if _COMPLAINT.search(line)]

"""Node ids of one test in several places."""

from __future__ import annotations

import re


def suite_test(nodeid: str) -> str:
    """The node id from the suites on: they lie elsewhere in a clone than in a wheel."""
    return re.sub(r"^.*?(?:^|/)_?suites/", "", nodeid)

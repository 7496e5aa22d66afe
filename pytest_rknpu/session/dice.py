"""What an emulated board leaves to chance, so that one test alone does what it did in the middle of a run.

The dice of evictions and faults are thrown anew for each command list, by the test's seed, what the list
says, and how often the test has sent it before. So they do not depend on the tests before, nor on what a
session has asked the board already and remembers (descriptions, references).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any


class Dice:
    """The seeds of one test's command lists."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sent: Counter[str] = Counter()

    def seed_for(self, program: dict[str, Any]) -> int:
        """The seed of a program (as `Program.plain` gives it) this time, 0 to 2**63 - 1."""
        content = hashlib.sha256(repr(program["commands"]).encode("utf-8", "backslashreplace"))
        for name, data in sorted(program["blobs"].items()):
            content.update(hashlib.sha256(name.encode("utf-8", "backslashreplace") + b"\0" + data).digest())
        said = content.hexdigest()
        self._sent[said] += 1
        digest = hashlib.sha256(f"{self._seed}\n{said}\n{self._sent[said]}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

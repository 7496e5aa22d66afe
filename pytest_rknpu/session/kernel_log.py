"""What is new in a kernel's messages about its NPU (VER-05)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]
"""``sequence``, ``seconds``, ``level`` and ``text``, as the agent's probe gives them."""

_COMPLAINT = re.compile(
    r"error|fail|time[d ]*out|soft reset|abort|disabling irq|nobody cared|page fault|oops|stall",
    re.IGNORECASE,
)
# Emergency to error, by the kernel's own judgement.
_ERROR = 3


def new_complaints(before: Sequence[Message], after: Sequence[Message]) -> list[str]:
    """The words of those messages of ``after`` that tell of trouble and were not there ``before``.

    Both are the last messages about the NPU. What is new goes by the kernel's own numbers; where a log has
    none, by how often the same words are there.
    """
    return complaints(new_messages(before, after))


def complaints(messages: Sequence[Message]) -> list[str]:
    """The words of those messages that tell of trouble."""
    return [str(message["text"]) for message in messages if _complains(message)]


def _complains(message: Message) -> bool:
    level = message["level"]
    return (level is not None and level <= _ERROR) or bool(_COMPLAINT.search(message["text"]))


def new_messages(before: Sequence[Message], after: Sequence[Message]) -> list[Message]:
    """Those of ``after`` that were not there ``before``, by the kernel's numbers or by their words."""
    if any(message["sequence"] is None for message in (*before, *after)):
        known = Counter(message["text"] for message in before)
        known.subtract(message["text"] for message in after)
        return _surplus(after, {text: -count for text, count in known.items() if count < 0})
    newest = max((message["sequence"] for message in before), default=-1)
    return [message for message in after if message["sequence"] > newest]


def _surplus(after: Sequence[Message], more: dict[str, int]) -> list[Message]:
    """The last of the messages whose words are there more often than before."""
    found: list[Message] = []
    for message in reversed(after):
        if more.get(message["text"], 0) > 0:
            more[message["text"]] -= 1
            found.append(message)
    return found[::-1]

"""What comes from the process that started this one: lines on stdin, signals, and its end."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from typing import Any

_LOOK_SECONDS = 0.5

Inbox = queue.SimpleQueue[tuple[str, Any]]
"""All that a keeper has to hear of, in one queue: (kind, value). A signal handler may put into it."""


def listen(inbox: Inbox) -> None:
    """From now on put ``("check", None)`` and ``("released", abruptly)`` into ``inbox``."""
    parent = os.getppid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: inbox.put(("released", True)))
    threading.Thread(target=_read, args=(inbox, parent), daemon=True).start()
    threading.Thread(target=_watch, args=(inbox, parent), daemon=True).start()


def _read(inbox: Inbox, parent: int) -> None:
    for line in sys.stdin:
        if line.strip() == "check":
            inbox.put(("check", None))
    inbox.put(("released", os.getppid() != parent))


def _watch(inbox: Inbox, parent: int) -> None:
    """A process that the parent forked may keep our stdin open after the parent's end."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    inbox.put(("released", True))

"""The runtime's log as librknnrt writes it: lines on file descriptor 2, errors as ``E RKNN: [hh:mm:ss.mmm]
...``.
"""

from __future__ import annotations

import os
from datetime import datetime

_STDERR = 2


def error(message: str) -> None:
    """Write one error line; each says that it is emulated."""
    _write("E", message)


def warning(message: str) -> None:
    """Write one warning line."""
    _write("W", message)


def _write(level: str, message: str) -> None:
    now = datetime.now().strftime("%H:%M:%S.%f")[:-3]
    line = " ".join(message.split())
    os.write(_STDERR, f"{level} RKNN: [{now}] emulated: {line}\n".encode())

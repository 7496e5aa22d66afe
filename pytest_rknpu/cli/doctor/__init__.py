"""`rknpu doctor`: what is missing on this host and in boards.toml, with what mends it.

Boards are knocked at, side by side and with a limit; none is leased, logged in to, or changed.
"""

from __future__ import annotations

from pytest_rknpu.cli.doctor.examination import Examined, examine
from pytest_rknpu.cli.doctor.finding import Finding, Severity
from pytest_rknpu.cli.doctor.wording import examined_json, examined_text

__all__ = ["Examined", "Finding", "Severity", "examine", "examined_json", "examined_text"]

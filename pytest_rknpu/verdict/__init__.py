"""What a result can be, which requirements there are, and what one test has to say about them.

Depends on nothing of ours but `pytest_rknpu.errors`, so that suites, fixtures and reports build on it.
"""

from __future__ import annotations

from pytest_rknpu.verdict.capabilities import CAPABILITIES, lacking, require_known_needs
from pytest_rknpu.verdict.judgement import LOG_REQUIREMENT, Phase, Verdict, conclude, unexpected_log_error
from pytest_rknpu.verdict.outcome import Outcome, message_of, outcome_of, worst
from pytest_rknpu.verdict.record import ItemRecord, Measurement, Samples, WaivedBy, sendable
from pytest_rknpu.verdict.requirements import CHAPTERS, REQUIREMENTS, Chapter, Requirement, require_known

__all__ = [
    "CAPABILITIES",
    "CHAPTERS",
    "LOG_REQUIREMENT",
    "REQUIREMENTS",
    "Chapter",
    "ItemRecord",
    "Measurement",
    "Outcome",
    "Phase",
    "Requirement",
    "Samples",
    "Verdict",
    "WaivedBy",
    "conclude",
    "lacking",
    "message_of",
    "outcome_of",
    "require_known",
    "require_known_needs",
    "sendable",
    "unexpected_log_error",
    "worst",
]

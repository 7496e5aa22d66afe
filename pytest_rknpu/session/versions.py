"""The versions a verdict holds for (VER-01): each a value, "absent (why)" or "probe blocked (why)"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import ConformanceFailure, ModelError, ToolkitError
from pytest_rknpu.session.artifacts import artifact_for

if TYPE_CHECKING:
    from pytest_rknpu.session.board_session import BoardSession


def identify(session: BoardSession) -> None:
    """Fill ``session.versions`` from the probed facts and from what the runtime says of a small model."""
    session.versions = {"bsp": "absent"}
    try:
        sha256 = session.store_model(artifact_for(session.board, "probe_pointwise"))
        description = session.describe(sha256)
    except (ModelError, ToolkitError, ConformanceFailure) as error:
        session.versions["runtime"] = str(error)
    else:
        session.versions["runtime"] = description.api_version
        session.versions["driver"] = description.driver_version


def _text(fact: Mapping[str, Any]) -> str:
    return str(fact)

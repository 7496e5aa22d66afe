"""What ``RKNN.get_sdk_version`` says of a connected board: versions of API, rknn_server, runtime and driver.

Seen: ``API: 1.5.2 (..)``, ``API: librknn_api version: 1.5.1 (..)``; ``DRV: rknn_server: ..`` followed by
``DRV: rknnrt: ..`` or by an indented ``rknnrt: ..``; ``DRV: 1.6.0 (..)`` alone; each line with or without a
prefix such as ``D RKNNAPI:``. The fields of rknn_sdk_version as a dict are taken too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.errors import ToolkitError

_API = re.compile(r"\bAPI:\s*(?:librknn\w*\s+version:?\s*)?(\S.*?)\s*$", re.MULTILINE)
_SERVER = re.compile(r"\brknn_server:\s*(\S.*?)\s*$", re.MULTILINE)
_RUNTIME = re.compile(r"\b(?:lib)?rknn\w*rt(?:\s+version)?:\s*(\S.*?)\s*$", re.MULTILINE)
_DRIVER = re.compile(r"\bDRV:\s*(?!rknn)(\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class SdkVersions:
    """As the board words them, such as "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"; None where not said."""

    api: str
    server: str | None = None
    runtime: str | None = None
    driver: str | None = None


def parse_sdk_version(report: str | Mapping[str, Any]) -> SdkVersions:
    """Read what ``get_sdk_version`` returned or printed. ToolkitError: it names no API version."""
    if not isinstance(report, str):
        return _from_mapping(report)
    found = {
        name: pattern.search(report)
        for name, pattern in (("api", _API), ("server", _SERVER), ("runtime", _RUNTIME), ("driver", _DRIVER))
    }
    if found["api"] is None:
        words = " ".join(report.split())[:200]
        raise ToolkitError(f"get_sdk_version named no API version; it said: {words or 'nothing'}")
    return SdkVersions(**{name: match[1] for name, match in found.items() if match is not None})


def _from_mapping(report: Mapping[str, Any]) -> SdkVersions:
    """``api_version`` and ``drv_version``, the fields of rknn_sdk_version (rknn_api.h)."""
    given = {str(key).lower(): str(value).strip() for key, value in report.items() if value}
    api = given.get("api_version") or given.get("api")
    if not api:
        keys = ", ".join(map(str, report)) or "none"
        raise ToolkitError(f"get_sdk_version returned no API version; its keys: {keys}")
    return SdkVersions(api=api, driver=given.get("drv_version") or given.get("drv"))

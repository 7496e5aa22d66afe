"""What all tests share: pytest's own test tool, and leases that no other run on this host can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNPU_LEASE_DIR", str(tmp_path / "leases"))

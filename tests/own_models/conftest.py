"""A user's project: a boards.toml with models of its own, small ones made here."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_models.project import Project

# Imported here once: pytester forgets after each run what was imported during it.
import pytest_rknpu.emulator
import pytest_rknpu.inventory.selection
import pytest_rknpu.report.junit
import pytest_rknpu.session
import pytest_rknpu.sparsity.rows
import pytest_rknpu.toolchain.board
import pytest_rknpu.toolchain.memory_plan  # noqa: F401


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """Files of small models and their data, and no boards.toml yet."""
    return Project(pytester)


@pytest.fixture
def folder(project: Project) -> Path:
    """Where its files are."""
    return project.folder

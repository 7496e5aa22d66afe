"""Boards that RKNN-Toolkit2 drives from this host (docs/user-models.md): versions, memory, time, operators.

ACC-01 and ACC-02 run on them too (suites/accuracy). Tests of the C API cannot: there is no agent on such a board.
"""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.farm.run import RUN
from pytest_rknpu.fixtures import Effort, ItemRecord
from pytest_rknpu.inventory.budgets import find_budget, one_core
from pytest_rknpu.session import ConnectedSession, UserModel, UserModels
from pytest_rknpu.session.artifacts import build_log_of
from pytest_rknpu.session.user_models import built
from pytest_rknpu.session.versions import is_value
from pytest_rknpu.toolchain import Plan, parse_build_log

INDISPENSABLE = ("runtime", "rknn_server")
EVALUATIONS = 10

"""RKNN-Toolkit2 as a tool: compile and simulate in a child process, never imported here."""

from __future__ import annotations

from pytest_rknpu.toolchain.build_log import BuildLog, Plan, parse_build_log
from pytest_rknpu.toolchain.compile import Compiled, compile_model
from pytest_rknpu.toolchain.options import CompileOptions
from pytest_rknpu.toolchain.rknn_file import RknnHeader, read_header
from pytest_rknpu.toolchain.simulator import Simulation, simulate, simulate_inputs, simulation_of
from pytest_rknpu.toolchain.source import ModelSource
from pytest_rknpu.toolchain.status import INSTALL_COMMAND, ToolkitStatus, toolkit_status

__all__ = [
    "INSTALL_COMMAND",
    "BuildLog",
    "CompileOptions",
    "Compiled",
    "ModelSource",
    "Plan",
    "RknnHeader",
    "Simulation",
    "ToolkitStatus",
    "compile_model",
    "parse_build_log",
    "read_header",
    "simulate",
    "simulate_inputs",
    "simulation_of",
    "toolkit_status",
]

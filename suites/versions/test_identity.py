"""VER-01, VER-02, VER-04: what the board is and runs is recorded, and it is what boards.toml says."""

from __future__ import annotations

import re

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.session import Npu
from pytest_rknpu.session.missing import missing_on, reason
from pytest_rknpu.session.versions import RECORDED, is_value

# Without these a verdict cannot be tied to anything.
INDISPENSABLE = ("driver", "runtime")


@pytest.mark.requirement("VER-01")
def test_versions_are_recorded(npu: Npu) -> None:
    """Each version is a value, "absent" or "probe blocked" with the reason; driver and runtime are values."""
    versions = npu.session.versions
    missing = [name for name in RECORDED if not versions.get(name)]
    if missing:
        raise ConformanceFailure(
            f"board {npu.session.board.name}: nothing is recorded for {', '.join(missing)}"
        )
    unknown = {name: versions[name] for name in INDISPENSABLE if not is_value(versions[name])}
    if unknown:
        raise Inconclusive(f"board {npu.session.board.name}: a verdict cannot be tied to versions: {unknown}")


@pytest.mark.requirement("VER-01")
@pytest.mark.parametrize(("one", "other"), [("driver", "driver_api"), ("runtime", "runtime_library")])
def test_two_ways_to_ask_agree(npu: Npu, one: str, other: str) -> None:
    """The driver by sysfs and by rknn_query, the runtime by rknn_query and by its file's own string."""
    first, second = (npu.session.versions[name] for name in (one, other))
    blocked = [text for text in (first, second) if text.startswith("probe blocked")]
    if blocked:
        raise Inconclusive(f"board {npu.session.board.name}: one way to ask is barred: {'; '.join(blocked)}")
    if not (is_value(first) and is_value(second)):
        pytest.skip(f"only one way to ask answers: {one} {first}, {other} {second}")
    numbers = [re.search(r"\d+\.\d+\.\d+\w*", text) for text in (first, second)]
    if not all(numbers):
        raise Inconclusive(f"no version number in {one} {first!r} or {other} {second!r}")
    if len({match.group() for match in numbers if match}) > 1:
        raise ConformanceFailure(
            f"board {npu.session.board.name}: {one} is {first!r}, but {other} {second!r}"
        )


@pytest.mark.requirement("VER-02")
def test_the_board_is_the_soc_of_boards_toml(npu: Npu) -> None:
    """Any NUL-separated entry of the device tree's ``compatible`` names the SoC."""
    fact = npu.session.facts["device_tree_compatible"]
    if "value" not in fact:
        device = npu.session.facts["npu_device"].get("value") or {}
        driver = device.get("compatible")
        seen = f"; the NPU's driver says {driver}" if driver else ""
        raise Inconclusive(f"the device tree cannot be read: {reason(fact)}{seen}")
    if not npu.soc.matches_device_tree(fact["value"]):
        raise ConformanceFailure(
            f"board {npu.session.board.name} is {npu.soc.name} in boards.toml, but its device tree says "
            f"{', '.join(fact['value'])}; correct `soc`, or connect to the right board"
        )


@pytest.mark.requirement("VER-04")
def test_the_npu_device_is_usable(npu: Npu) -> None:
    """Found by the driver's name, never by number or symlink, and it can be opened."""
    facts, board = npu.session.facts, npu.session.board.name
    device = facts["npu_device"]
    if "blocked" in device:
        raise Inconclusive(f"board {board}: nobody may look: {device['blocked']}")
    emulated = npu.session.board.runtime == "emulator"
    problems = [
        f"{problem.why}: {problem.remedy}"
        for problem in missing_on(npu.soc, facts, emulated=emulated)
        if problem.what in ("npu-driver", "npu-access")
    ]
    if problems:
        raise ConformanceFailure(f"board {board}: the NPU cannot be used: {'; '.join(problems)}")
    npu.record.note(f"NPU device {', '.join(device['value']['nodes'])}, driver {device['value']['driver']}")
    for refused in facts["npu_access"]["value"]["refused"]:
        npu.record.note(f"not for this user: {refused}")

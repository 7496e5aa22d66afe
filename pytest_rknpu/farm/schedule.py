"""pytest-xdist: all tests of a machine on one worker, machines in parallel, node ids as they are.

A machine is what is leased: two entries of boards.toml for one host are two boards and one machine.

Imported only where xdist distributes a run with boards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

MachineOf = Callable[[str], "str | None"]
"""Names what has to be leased for the test with that node id, or None."""


def board_in(nodeid: str, names: Collection[str]) -> str | None:
    """The longest of ``names`` that begins the node id's bracket: ``test_x[rk3588-64]`` is about rk3588."""
    _, _, inside = nodeid.partition("::")[2].partition("[")
    inside = inside.removesuffix("]")
    beginning = [name for name in names if inside == name or inside.startswith(f"{name}-")]
    return max(beginning, key=len, default=None)


def scope_of(nodeid: str, machine: str | None) -> str:
    """What is dealt to one worker as a whole: a machine, or else a file.

    A machine's scope cannot be mistaken for a file's, which has no ``::``.
    """
    return f"machine::{machine}" if machine else nodeid.partition("::")[0]


class BoardScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed for subclassing
    """LoadScopeScheduling by machine. A test that takes its worker down is not tried on the next one."""

    def __init__(self, config: pytest.Config, log: Producer, machine_of: MachineOf) -> None:
        super().__init__(config, log)
        self._machine_of = machine_of

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid, self._machine_of(nodeid))

    def remove_node(self, node: WorkerController) -> str | None:
        """As in the base class, which however would give the culprit, and finished scopes, out again."""
        units = self.assigned_work[node]
        pending = (nodeid for unit in units.values() for nodeid, done in unit.items() if not done)
        culprit: str | None = next(pending, None)
        if culprit is not None:
            next(unit for unit in units.values() if culprit in unit)[culprit] = True
        self.assigned_work[node] = {scope: unit for scope, unit in units.items() if not all(unit.values())}
        super().remove_node(node)
        return culprit

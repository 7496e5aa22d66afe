"""Turns a program into steps: everything that can be checked is checked here, before anything runs.

A step is a function of the iteration number of the innermost ``repeat``. Names, functions, blobs and
structures are resolved once, so that a loop of thousands of iterations does nothing per command but the work
itself.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Tuple

from .failures import ProgramFailure, located
from .fields import MAXIMUM_CONTAINERS, MAXIMUM_SAVED_BYTES, MAXIMUM_VALUES, Blobs, record
from .state import Handed, State, inherited
from .store import ModelStore

Step = Callable[[int], Any]
Body = Tuple[Tuple[int, Step], ...]


class Names:
    """Which names exist at a point of the program, as far as can be told without running it.

    ``alive`` may exist; ``sure`` surely exist (created by a command that does not tolerate failure).
    """

    def __init__(self, noun: str, alive: set[str], stale: set[str]) -> None:
        self.noun = noun
        self.alive = alive
        self.sure = set(alive)
        self.stale = stale

    def use(self, name: str | None) -> None:
        """The command uses this name; None is the C API's NULL."""
        if name is None or name in self.alive:
            return
        state = "was destroyed before this command" if name in self.stale else "is not known here"
        raise ProgramFailure(f"{self.noun} {name!r} {state}; there are {sorted(self.alive) or 'none'}")

    def create(self, name: str, surely: bool) -> None:
        """The command creates this name."""
        if name in self.sure:
            raise ProgramFailure(f"{self.noun} {name!r} exists already; destroy it first")
        self.alive.add(name)
        self.stale.discard(name)
        if surely:
            self.sure.add(name)

    def destroy(self, name: str, surely: bool) -> None:
        """The command destroys this name."""
        self.use(name)
        self.sure.discard(name)
        self.stale.add(name)
        if surely:
            self.alive.discard(name)


class Services:
    """What steps need beside the state.

    The model store, the child launcher, a look at the log in between, the folder that stands for ``/``, and
    when (monotonic seconds) loops give up, since nobody waits for their result any more.
    """

    def __init__(
        self,
        store: ModelStore,
        run_child: Callable[[list[Any], Blobs, float, Handed], dict[str, Any]],
        pump_log: Callable[[], None],
        root: str = "/",
        ends: float = math.inf,
    ) -> None:
        self.root = root
        self.ends = ends
        self.store = store
        self.run_child = run_child
        self.pump_log = pump_log


class Compiler:
    """Compiles one program against a state. ``values`` fills while the steps run."""

    def __init__(self, state: State, services: Services, blobs: Blobs, in_child: bool) -> None:
        self.state = state
        self.services = services
        self.blobs = blobs
        self.in_child = in_child
        self.values: dict[str, Any] = {}
        self.contexts = Names("context", set(state.contexts), set(state.stale_contexts))
        self.memories = Names("memory", set(state.memories), set(state.stale_memories))
        self._saves: set[str] = set()
        self._saved_bytes = 0
        self._repeats = 0
        self._rounds = 1
        self._depth = 0

    def function(self, name: str) -> Any:
        """The C function; ``MissingFunction`` before anything runs where the library lacks it."""
        return self.state.binding.function(name)

    def body(self, commands: list[Any], repeated: bool = False, rounds: int = 1) -> Body:
        """Compile the commands of a list; a failure's ``at`` begins with the index of the command.

        ``rounds`` is how often a loop will run them, as far as that is known.
        """
        outer = self._rounds
        self._rounds *= rounds
        self._depth += 1
        self._repeats += repeated
        if self._depth > MAXIMUM_CONTAINERS:
            raise ProgramFailure(f"lists are nested more than {MAXIMUM_CONTAINERS} deep")
        steps = []
        for index, command in enumerate(commands):
            try:
                steps.append((index, self._step(command)))
            except Exception as error:
                raise located(error, index) from error
        self._repeats -= repeated
        self._depth -= 1
        self._rounds = outer
        return tuple(steps)

    def child_body(self, commands: list[Any], inherits: list[str]) -> None:
        """Check the commands of a child, which starts with no contexts or memories; keeps no steps.

        ``inherits`` names the memories that it is handed by descriptor.
        """
        state = State(self.state.binding, {name: inherited(name, -1, 0, 0) for name in inherits})
        child = Compiler(state, self.services, self.blobs, in_child=True)
        child._depth = self._depth
        child.body(commands)

    def save_summary(self, name: str, summary: Any) -> None:
        """Register a value that a step fills in place (``compare``)."""
        self._claim(name)
        self.values[name] = summary

    def _claim(self, name: str) -> None:
        if name in self._saves:
            raise ProgramFailure(f"two commands save {name!r}")
        self._saves.add(name)

    def _step(self, command: Any) -> Step:
        from .operations import OPERATIONS  # operations names the builders, which need this module

        operation = command.get("op") if isinstance(command, dict) else None
        if not isinstance(operation, str) or operation not in OPERATIONS:
            raise ProgramFailure(f"unknown operation {operation!r}; there are {', '.join(OPERATIONS)}")
        entry = OPERATIONS[operation]
        try:
            given = {key: value for key, value in command.items() if key != "op"}
            arguments = record(given, entry.fields, self.blobs)
            step = entry.build(arguments, self)
        except ProgramFailure as error:
            error.args = (f"{operation}: {error}",)
            raise
        return step if operation == "compare" else self._saved(step, arguments.get("save"))

    def _saved(self, step: Step, name: str | None) -> Step:
        if name is None:
            return step
        self._claim(name)
        if self._rounds > MAXIMUM_VALUES:
            raise ProgramFailure(
                f"saves {self._rounds} values under {name!r}, and at most {MAXIMUM_VALUES} are kept; "
                "`compare` counts any number"
            )
        values, account = self.values, self._account
        if self._repeats:
            append = values.setdefault(name, []).append

            def collect(iteration: int) -> None:
                append(account(step(iteration)))

            return collect

        def keep(iteration: int) -> None:
            values[name] = account(step(iteration))

        return keep

    def _account(self, value: Any) -> Any:
        """The value itself, its bytes added up; ``ProgramFailure`` where they are too many."""
        if isinstance(value, bytes):
            self._saved_bytes += len(value)
        elif isinstance(value, list):
            self._saved_bytes += sum(len(entry) for entry in value if isinstance(entry, bytes))
        if self._saved_bytes > MAXIMUM_SAVED_BYTES:
            raise ProgramFailure(
                f"the list saves more than {MAXIMUM_SAVED_BYTES} bytes; use `compare` or `digest` instead"
            )
        return value


def run_body(body: Body, iteration: int) -> None:
    """Run the steps of a list once; a failure's ``at`` gets the index of the step."""
    index = 0
    try:
        for index, step in body:  # noqa: B007 - the handler below tells where
            step(iteration)
    except Exception as error:
        raise located(error, index) from error

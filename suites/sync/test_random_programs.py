"""SYNC-16: random legal programs of CPU accesses, hand-overs and runs agree with a reference memory model."""

from __future__ import annotations

from dataclasses import dataclass, field

import hypothesis
import pytest
from hypothesis import strategies as st

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    BIDIRECTIONAL,
    FROM_DEVICE,
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    ZeroCopy,
)

MEMORIES = ("m0", "m1", "m2")
CPU, DEVICE = "cpu", "device"


@dataclass(frozen=True)
class Step:
    """One random wish; the memory model turns it into legal commands or leaves it out."""

    kind: str
    memory: int
    offset: int
    length: int
    byte: int
    both: bool


STEPS = st.builds(
    Step,
    kind=st.sampled_from(["write", "read", "run", "thrash"]),
    memory=st.integers(0, len(MEMORIES) - 1),
    offset=st.integers(0, 4095),
    length=st.integers(1, 300),
    byte=st.integers(0, 255),
    both=st.booleans(),
)


@dataclass
class MemoryModel:
    """What each memory holds and who owns it; the whole truth that a legal program can rely on.

    Context a reads m0 and writes m1, context b reads m1 and writes m2. An access by a party that does not
    own the memory is preceded by the sync that makes it legal.
    """

    npu: Npu
    model: LoadedModel
    program: Program
    contents: dict[str, bytes]
    owners: dict[str, str] = field(default_factory=lambda: dict.fromkeys(MEMORIES, CPU))
    reads: int = 0

    def take(self, memory: str, owner: str, both: bool) -> None:
        """Hand ``memory`` over to ``owner``, by one direction or by BIDIRECTIONAL."""
        if self.owners[memory] != owner:
            one_way = TO_DEVICE if owner == DEVICE else FROM_DEVICE
            self.program.sync(memory, BIDIRECTIONAL if both else one_way, "a")
            self.owners[memory] = owner

    def apply(self, step: Step) -> None:
        """Record the commands of one step and follow what they do."""
        memory = MEMORIES[step.memory]
        if step.kind == "thrash":
            self.program.thrash(1024 * 1024)
        elif step.kind == "run":
            self._run("a" if step.memory % 2 == 0 else "b", step.both)
        elif step.kind == "write":
            self.take(memory, CPU, step.both)
            content = self.contents[memory]
            offset = step.offset % len(content)
            data = bytes([step.byte]) * min(step.length, len(content) - offset)
            self.program.write(memory, data, offset=offset)
            self.contents[memory] = content[:offset] + data + content[offset + len(data) :]
        else:
            self.check(memory, step.both)

    def check(self, memory: str, both: bool) -> None:
        """The CPU reads the whole memory."""
        self.take(memory, CPU, both)
        self.program.compare(memory, self.contents[memory], f"read {self.reads} of {memory}")
        self.reads += 1

    def _run(self, context: str, both: bool) -> None:
        source, target = ("m0", "m1") if context == "a" else ("m1", "m2")
        self.take(source, DEVICE, both)
        self.take(target, DEVICE, both)
        self.program.run(context)
        self.contents[target] = self.npu.reference(self.model, [self.contents[source]])[0]


@pytest.mark.requirement("SYNC-16")
def test_random_programs_agree_with_the_memory_model(npu: Npu, model: LoadedModel, effort: Effort) -> None:
    """Seeded; a failing program is shrunk, and the message holds its steps."""
    examples = effort.rounds(40)

    @hypothesis.seed(npu.seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    )
    @hypothesis.given(steps=st.lists(STEPS, min_size=1, max_size=20))
    def agree(steps: list[Step]) -> None:
        _run_and_check(npu, model, steps)

    try:
        agree()
    except hypothesis.errors.FlakyFailure as flaky:
        causes = [error for error in flaky.exceptions if isinstance(error, ConformanceFailure)]
        if not causes:
            raise
        raise ConformanceFailure(f"{causes[0]}\n(not every replay of the shrunk program fails)") from flaky
    npu.record_bound(examples)


def _run_and_check(npu: Npu, model: LoadedModel, steps: list[Step]) -> None:
    flags = npu.application_syncs
    program = Program()
    size = ZeroCopy("a", model).input_size
    for context in "ab":
        program.init(context, model.sha256, flags=flags)
    memory_model = MemoryModel(npu, model, program, dict.fromkeys(MEMORIES, bytes([0x11]) * size))
    for memory in MEMORIES:
        program.create_mem(memory, "a", size)
        program.fill(memory, 0x11)
    input_attr = {**model.description.inputs[0].native, "pass_through": 1}
    output_attr = model.description.outputs[0].native
    for context, source, target in (("a", "m0", "m1"), ("b", "m1", "m2")):
        program.bind(context, source, input_attr)
        program.bind(context, target, output_attr)
    for step in steps:
        memory_model.apply(step)
    for memory in MEMORIES:
        memory_model.check(memory, both=False)
    for memory in MEMORIES:
        program.destroy_mem(memory, "a")
    for context in "ab":
        program.destroy(context)
    try:
        values = npu.execute(program)
    except BaseException:
        npu.session.reset()
        raise
    for name, value in values.items():
        npu.require_same(value, f"{name} in a program of {len(steps)} steps {steps}")

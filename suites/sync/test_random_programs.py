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
    Sensitivity,
    ZeroCopy,
    require_sensitive,
)
from pytest_rknpu.session.zero_copy import bound_attr, require_feeds_itself, significant_bytes

# Memory -> the context that it was made with, which its syncs name too. Context b imports m1.
MEMORIES = {"m0": "a", "m1": "a", "m2": "b"}
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
            self.program.sync(memory, BIDIRECTIONAL if both else one_way, MEMORIES[memory])
            self.owners[memory] = owner

    def apply(self, step: Step) -> None:
        """Record the commands of one step and follow what they do."""
        memory = list(MEMORIES)[step.memory]
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
        # Padding is left out: no document promises what the NPU does there.
        mask = None if memory == "m0" else significant_bytes(self.model.description.outputs[0])
        self.program.compare(memory, self.contents[memory], f"read {self.reads} of {memory}", mask=mask)
        self.reads += 1

    def _run(self, context: str, both: bool) -> None:
        source, target = ("m0", "m1") if context == "a" else ("m1", "m2")
        self.take(source, DEVICE, both)
        self.take(target, DEVICE, both)
        self.program.run(context)
        self.contents[target] = self.npu.reference(self.model, [self.contents[source]])[0]


@pytest.mark.requirement("SYNC-16")
def test_random_programs_agree_with_the_memory_model(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort
) -> None:
    """Seeded; a failing program is shrunk, and the message holds its steps."""
    require_feeds_itself(model)
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
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")


def _run_and_check(npu: Npu, model: LoadedModel, steps: list[Step]) -> None:
    flags = npu.application_syncs
    program = Program()
    size = ZeroCopy("a", model).input_size
    for context in "ab":
        program.init(context, model.sha256, flags=flags)
    memory_model = MemoryModel(npu, model, program, dict.fromkeys(MEMORIES, bytes([0x11]) * size))
    for memory, context in MEMORIES.items():
        program.create_mem(memory, context, size)
        program.fill(memory, 0x11)
    program.import_fd("m1 in b", "b", "m1", size)
    for context, source, target in (("a", "m0", "m1"), ("b", "m1 in b", "m2")):
        program.bind(context, source, bound_attr(model.description.inputs[0].native, "input"))
        program.bind(context, target, bound_attr(model.description.outputs[0].native, "output"))
    for step in steps:
        memory_model.apply(step)
    for memory in MEMORIES:
        memory_model.check(memory, both=False)
    for memory, context in {"m1 in b": "b", **MEMORIES}.items():
        program.destroy_mem(memory, context)
    for context in "ab":
        program.destroy(context)
    try:
        values = npu.execute(program)
    except BaseException:
        npu.session.reset()
        raise
    for name, value in values.items():
        npu.require_same(value, f"{name} in a program of {len(steps)} steps {steps}")

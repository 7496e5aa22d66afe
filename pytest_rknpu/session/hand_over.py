"""Hand-overs from CPU to NPU and back: the loop that most SYNC tests turn, each with syncs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.session.program import Program
from pytest_rknpu.session.zero_copy import ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import Npu


def hand_overs(
    npu: Npu,
    io: ZeroCopy,
    inputs: Sequence[bytes],
    rounds: int,
    *,
    to_npu: int | None,
    to_cpu: int | None,
    deadline_s: float | None = None,
) -> dict[str, Any]:
    """Write ``inputs`` in turn, run, compare the output with the reference: ``rounds`` times in one context.

    ``to_npu`` is the mode of the sync between writing and running, ``to_cpu`` of that between running and
    reading; None: no sync. Returns what ``compare`` saved, for ``Npu.require_same``.
    """
    expected = npu.reference(io.model, inputs)
    require_followed(npu, inputs, expected)
    program = Program()
    io.open(program)
    with program.repeat(rounds):
        program.write_cycle(io.input, inputs)
        if to_npu is not None:
            program.sync(io.input, to_npu, io.context)
        program.run(io.context)
        if to_cpu is not None:
            program.sync(io.output, to_cpu, io.context)
        io.compare_output(program, expected, "output")
    io.close(program)
    compared: dict[str, Any] = npu.execute(program, deadline_s)["output"]
    return compared


def require_followed(npu: Npu, inputs: Sequence[bytes], outputs: Sequence[bytes]) -> None:
    """ConformanceFailure where different inputs all gave one output, by the most careful way there is.

    Nothing held against that output would show anything: who never gets new input is right about the old.
    """
    if len(set(inputs)) > 1 and len(set(outputs)) == 1:
        raise ConformanceFailure(
            f"board {npu.session.board.name} ({npu.soc.name}): {len(set(inputs))} different inputs give one "
            "output, also by the way that relies on no sync of the application: inputs do not reach the NPU, "
            "or outputs do not come back"
        )

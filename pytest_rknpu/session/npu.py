"""What a suite author holds: the NPU of one board, for one test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE as NO_INPUT_FLUSH
from pytest_rknpu.agent.abi import RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE as NO_OUTPUT_FLUSH
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.measure import fault_rate_bound
from pytest_rknpu.session.artifacts import artifact_for, shapes_of
from pytest_rknpu.session.board_session import BoardSession, MissingFunction
from pytest_rknpu.session.children import logs_of
from pytest_rknpu.session.compatibility import require_known_to_work
from pytest_rknpu.session.description import ModelDescription, with_shapes
from pytest_rknpu.session.differences import describe_difference, describe_mismatch
from pytest_rknpu.session.kernel_log import complaints
from pytest_rknpu.session.layout import to_memory
from pytest_rknpu.session.program import Program
from pytest_rknpu.session.references import reference_outputs
from pytest_rknpu.session.zero_copy import ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.session.user_models import UserModel, UserModels
    from pytest_rknpu.verdict.record import ItemRecord

# The first runtime whose header has the two flags; 1.5.2 and 1.6.0 ignore them (observed).
_FLUSH_FLAGS_SINCE = (2, 0)
# A header of the 1.x line ends at RKNN_NPU_CORE_0_1_2, that of 2.3.2 has RKNN_NPU_CORE_ALL.
_MASK_ALL_SINCE = (2, 0)
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class LoadedModel:
    """A model that lies on the board: its name here, the sha256 of its file, what the runtime says of it."""

    name: str
    sha256: str
    description: ModelDescription


@dataclass(frozen=True)
class FinishReport:
    """What a test left behind on the board, and what the runtime logged meanwhile.

    ``not_destroyed`` gives the code's name for what could not be cleared away, ``kernel_complaints`` are
    what the kernel said of trouble with the NPU meanwhile, where its log may be read.
    """

    left_behind: tuple[str, ...]
    runtime_log: str
    not_destroyed: Mapping[str, str] = field(default_factory=dict)
    kernel_complaints: tuple[str, ...] = ()

    @property
    def error_lines(self) -> list[str]:
        """Lines of level E of the runtime's log, and what the kernel complained of (VER-05)."""
        logged = [line for line in self.runtime_log.splitlines() if line.lstrip().startswith("E RKNN")]
        return [*logged, *(f"kernel: {text}" for text in self.kernel_complaints)]


class Npu:
    """Runs programs on one board and collects the runtime's log for one test."""

    def __init__(self, session: BoardSession, record: ItemRecord, seed: int) -> None:
        session.begin(seed)
        self.session = session
        self.record = record
        self.soc = session.soc
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.user_models: UserModels | None = None
        self._log: list[str] = []

    def execute(self, program: Program, deadline_s: float | None = None) -> dict[str, Any]:
        """Run a program on the board, by ``deadline_s`` (None: by what it does); returns its saved values.

        A function that the runtime library does not export skips the test with that proof. Raises
        RuntimeCallError (ConformanceFailure) for an unexpected code, BoardLost, HarnessError.
        """
        try:
            reply = self.session.execute(program, deadline_s)
        except MissingFunction as missing:
            pytest.skip(str(missing))
        values: dict[str, Any] = reply["values"]
        self._log += [str(reply["log"]), *logs_of(values)]
        return values

    def heard(self, log: str) -> None:
        """Take in what was logged on the board beside a program; it is judged with the rest (VER-05)."""
        self._log.append(log)

    def model(self, name: str, *, sparse_infer: bool | None = None) -> LoadedModel:
        """Put a model of pytest_rknpu.models, or of boards.toml, on the board and ask the runtime about it.

        ``sparse_infer``: for silicon it is compiled for sparse inference (guide 4.1.7); None: where a model
        of boards.toml declares it. A model of boards.toml that this board cannot have skips with the proof.
        """
        own = self.user_models.get(name) if self.user_models is not None else None
        if own is not None:
            return self._own_model(own, sparse_infer)
        artifact = artifact_for(self.session.board, name, sparse_infer=bool(sparse_infer))
        return self.load(name, artifact)

    def load(self, name: str, artifact: bytes) -> LoadedModel:
        """Put the file ``artifact`` on the board: the model ``name`` of pytest_rknpu.models, however built.

        ConformanceFailure before the board is asked, where it is known that this cannot work (VER-03).
        """
        self._require_known_to_work(artifact)
        sha256 = self.session.store_model(artifact)
        return LoadedModel(name, sha256, with_shapes(self.session.describe(sha256), *shapes_of(name)))

    def _require_known_to_work(self, artifact: bytes) -> None:
        require_known_to_work(self.soc.name, self.soc.runtime, self.session.versions, artifact)

    def _own_model(self, model: UserModel, sparse_infer: bool | None) -> LoadedModel:
        from pytest_rknpu.session.user_artifacts import artifact_of

        artifact = artifact_of(self.session.board, model, sparse_infer=sparse_infer)
        self._require_known_to_work(artifact)
        sha256 = self.session.store_model(artifact)
        return LoadedModel(model.name, sha256, model.described(self.session.describe(sha256)))

    def reference(self, model: LoadedModel, inputs: Sequence[bytes]) -> list[bytes]:
        """For each input (native bytes of input 0) the native bytes of output 0, by the most careful way.

        See pytest_rknpu.session.references. Asked once per session and input.
        """
        return [output for _, output in reference_outputs(self, model, inputs)]

    def random_inputs(self, model: LoadedModel, count: int) -> list[bytes]:
        """``count`` different native memories of input 0, full of seeded random int8 values."""
        return [self.native_input(model, self.random_tensor(model)) for _ in range(count)]

    def random_tensor(self, model: LoadedModel) -> npt.NDArray[np.int8]:
        """A seeded random int8 array of input 0's logical NCHW shape."""
        shape = model.description.inputs[0].shape
        return self.random.integers(-128, 128, shape, dtype=np.int8)

    def native_input(self, model: LoadedModel, tensor: npt.NDArray[Any]) -> bytes:
        """The native memory of input 0 that holds ``tensor``."""
        return to_memory(tensor, model.description.inputs[0].native)

    def require_function(self, function: str) -> None:
        """Skip with the proof where the SoC's runtime has no such function or does not export it."""
        if function in self.soc.unsupported_functions:
            pytest.skip(
                f"{self.soc.name}: {function} is not supported by {self.soc.runtime} (C API reference 4-1)"
            )
        if function not in self.session.functions:
            self.skip_missing(function)

    def skip_missing(self, function: str) -> NoReturn:
        """Skip: the runtime library of this board does not export ``function``."""
        version = self.session.versions.get("runtime", "unknown version")
        pytest.skip(f"{self.session.board.name}: the runtime library ({version}) does not export {function}")

    @property
    def can_sync(self) -> bool:
        """Whether the application can sync at all: librknnrt 1.5.2 has no rknn_mem_sync, and nobody else may.

        Memory that the CPU has filled must then not be one that the NPU writes.
        """
        return "rknn_mem_sync" in self.session.functions

    @property
    def knows_flush_flags(self) -> bool:
        """Whether this runtime honours RKNN_FLAG_DISABLE_FLUSH_INPUT/OUTPUT_MEM_CACHE at all."""
        return self.session.runtime_release >= _FLUSH_FLAGS_SINCE

    @property
    def core_masks(self) -> tuple[str, ...]:
        """The names of the masks that rknn_set_core_mask takes with this SoC and runtime."""
        known = self.session.runtime_release >= _MASK_ALL_SINCE
        return tuple(mask for mask in self.soc.core_masks if known or mask != "RKNN_NPU_CORE_ALL")

    @property
    def application_syncs(self) -> int:
        """The flags (F) of the catalogue: rknn_run leaves cache maintenance to the application."""
        return int(NO_INPUT_FLUSH | NO_OUTPUT_FLUSH) if self.knows_flush_flags else 0

    def record_bound(self, iterations: int) -> None:
        """Record the fault rate that a clean run of ``iterations`` excludes (catalogue, preamble)."""
        self.record.measure("iterations", iterations)
        self.record.measure(
            f"fault rate excluded at {_CONFIDENCE:.0%}", fault_rate_bound(iterations, _CONFIDENCE)
        )

    def require_same(self, compared: dict[str, Any], what: str) -> None:
        """Fail with offsets, cache lines and both hexdumps where a saved ``compare`` found a difference."""
        if compared["mismatches"]:
            raise ConformanceFailure(
                f"board {self.session.board.name} ({self.soc.name}): {what}: {describe_mismatch(compared)}"
            )

    def require_equal(self, expected: bytes, actual: bytes, what: str) -> None:
        """Fail with offsets, cache lines and both hexdumps where two byte strings of the host differ."""
        difference = describe_difference(expected, actual)
        if difference:
            raise ConformanceFailure(
                f"board {self.session.board.name} ({self.soc.name}): {what}: {difference}"
            )

    def require_health(self) -> None:
        """Fail unless a fresh context gives the known result (ERR): call it before bad input and after it.

        The first call in a session asks the board for that result.
        """
        model = self.model("probe_pointwise")
        data = bytes(model.description.inputs[0].native_size)
        io = ZeroCopy("health", model)
        program = Program()
        io.open(program)
        program.write(io.input, data)
        program.run(io.context)
        io.compare_output(program, [self.reference(model, [data])[0]], "output")
        io.close(program)
        self.require_same(self.execute(program)["output"], "a fresh context does not give the known result")

    def finish(self) -> FinishReport:
        """Destroy what the test left behind and hand over the runtime's log; a dead board leaves nothing."""
        if not self.session.alive:
            return FinishReport((), "".join(self._log))
        reply = self.session.reset()
        log = "".join([*self._log, str(reply["log"])])
        said = tuple(complaints(reply.get("kernel_log", ())))
        return FinishReport(tuple(reply["left_behind"]), log, reply["not_destroyed"], said)

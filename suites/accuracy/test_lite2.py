"""ACC-03: RKNN-Toolkit-Lite2 and the general API give equal bytes on the same board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu.agent.abi import rknn_core_mask, rknn_tensor_format, rknn_tensor_type
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import LoadedModel, Npu, Program, code_name
from pytest_rknpu.session.inference import dequantise
from pytest_rknpu.session.layout import dtype_of
from pytest_rknpu.session.lite import (
    DataFormat,
    LiteAnswer,
    LiteCase,
    LiteOutput,
    ask_lite,
    why_another_runtime,
)

SAMPLES = 4
FEWEST = 2  # one alone cannot show that outputs follow the input
UNSCALED = 1 / 32  # of inputs that are not quantised
TYPES = {
    "float32": rknn_tensor_type.RKNN_TENSOR_FLOAT32,
    "uint8": rknn_tensor_type.RKNN_TENSOR_UINT8,
    "int8": rknn_tensor_type.RKNN_TENSOR_INT8,
}
FORMATS: dict[DataFormat, rknn_tensor_format] = {
    "nhwc": rknn_tensor_format.RKNN_TENSOR_NHWC,
    "nchw": rknn_tensor_format.RKNN_TENSOR_NCHW,
}
Tensor = NDArray[Any]


@dataclass(frozen=True)
class Form:
    """How inputs are handed over; ``pass_through``: the model's own type, bytes untouched."""

    dtype: str
    data_format: DataFormat
    pass_through: bool = False

    def __str__(self) -> str:
        return f"{self.dtype} {self.data_format}{', passed through' if self.pass_through else ''}"


FORMS = (
    Form("float32", "nhwc"),
    Form("float32", "nchw"),
    Form("uint8", "nhwc"),
    Form("int8", "nhwc"),
    Form("int8", "nhwc", pass_through=True),
)


@dataclass(frozen=True, eq=False)
class Sample:
    """One input of every tensor of a model, in one form: as numpy has it, and as rknn_inputs_set takes it."""

    form: Form
    case: LiteCase
    inputs: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Outputs:
    """What the general API gives for one sample, per output: want_float=1, and want_float=0."""

    as_float: list[bytes]
    as_it_is: list[bytes]


@pytest.mark.requirement("ACC-03")
@pytest.mark.needs("copying_api")
@pytest.mark.models("digits_cnn", "probe_chain", "probe_wide")
def test_equal_bytes_in_every_input_form(npu: Npu, model_name: str, effort: Effort) -> None:
    """Float32, uint8, int8, NHWC, NCHW, bytes passed through; outputs as the package returns them."""
    require_lite(npu)
    model = npu.model(model_name)
    count = max(FEWEST, effort.rounds(SAMPLES))
    samples = [sample for form in FORMS for sample in samples_of(npu, model, form, count)]
    samples = accepted(npu, model, samples)
    compare(npu, model, samples, {"": 0})


@pytest.mark.requirement("ACC-03")
@pytest.mark.needs("copying_api", "core_masks")
@pytest.mark.models("digits_cnn")
def test_equal_bytes_with_every_core_mask(npu: Npu, model_name: str, effort: Effort) -> None:
    """``init_runtime(core_mask=..)`` against rknn_set_core_mask with the same mask."""
    require_lite(npu)
    npu.require_function("rknn_set_core_mask")
    model = npu.model(model_name)
    samples = samples_of(npu, model, FORMS[0], max(FEWEST, effort.rounds(SAMPLES)))
    compare(npu, model, samples, {name: int(rknn_core_mask[name]) for name in npu.core_masks})
    npu.record.measure("core masks", len(npu.core_masks))


def require_lite(npu: Npu) -> None:
    """Skip with the proof where the package is not installed."""
    fact = npu.session.facts["lite_version"]
    if "blocked" in fact:
        raise Inconclusive(
            f"board {npu.session.board.name}: RKNN-Toolkit-Lite2 may be there or not: {fact['blocked']}"
        )
    if "value" not in fact:
        emulated = npu.session.board.runtime == "emulator"
        remedy = "" if emulated else "; on the board: pip install rknn-toolkit-lite2 (aarch64 only)"
        pytest.skip(f"{npu.session.board.name}: {fact['absent']}{remedy}")


def samples_of(npu: Npu, model: LoadedModel, form: Form, count: int) -> list[Sample]:
    """Seeded random samples in ``form``; none where the model's inputs cannot be given so."""
    tensors = model.description.inputs
    if form.pass_through and not all(_is_plain_nhwc(tensor.native, tensor.shape) for tensor in tensors):
        return []
    return [_sample(npu, model, form) for _ in range(count)]


def _is_plain_nhwc(native: Any, shape: tuple[int, ...]) -> bool:
    """Whether the NPU reads int8 in NHWC without padding: then both ways can pass the same bytes through."""
    return (
        native["fmt"] == rknn_tensor_format.RKNN_TENSOR_NHWC
        and dtype_of(native) == np.int8
        and int(native["size_with_stride"]) == int(np.prod(shape))
    )


def _sample(npu: Npu, model: LoadedModel, form: Form) -> Sample:
    arrays, inputs = [], []
    for tensor in model.description.inputs:
        array = _random(npu, tensor.logical, tensor.shape, form)
        arrays.append(array)
        inputs.append(
            {
                "index": tensor.index,
                "data": array.tobytes(),
                "type": int(TYPES[form.dtype]),
                "fmt": int(FORMATS[form.data_format]),
                "pass_through": form.pass_through,
            }
        )
    return Sample(form, LiteCase(tuple(arrays), form.data_format, form.pass_through), tuple(inputs))


def _random(npu: Npu, attr: Any, shape: tuple[int, ...], form: Form) -> Tensor:
    """An array that spans the model's range, laid out as ``form`` says where it has four dimensions."""
    low, high = (0, 256) if form.dtype == "uint8" else (-128, 128)
    drawn = npu.random.integers(low, high, shape).astype("uint8" if form.dtype == "uint8" else "int8")
    scaled = {**attr, "scale": attr["scale"] or UNSCALED}
    array: Tensor = dequantise(drawn, scaled) if form.dtype == "float32" else drawn
    if array.ndim == 4 and form.data_format == "nhwc":
        array = array.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(array)


def accepted(npu: Npu, model: LoadedModel, samples: Sequence[Sample]) -> list[Sample]:
    """Those whose form rknn_inputs_set takes; what it refuses is noted, and has no second opinion."""
    first = {str(sample.form): sample for sample in reversed(samples)}
    refusals = {name: _refusal(npu, model, sample) for name, sample in first.items()}
    for name, refusal in refusals.items():
        if refusal is not None:
            npu.record.note(f"not compared: rknn_inputs_set {refusal} for {name}")
    return [sample for sample in samples if refusals[str(sample.form)] is None]


def _refusal(npu: Npu, model: LoadedModel, sample: Sample) -> str | None:
    """What rknn_inputs_set does instead of taking the sample.

    librknnrt 1.5.2 says in its log alone that it cannot take float32 in NCHW, and returns success.
    """
    program = Program()
    program.init("asked", model.sha256)
    program.set_inputs("asked", sample.inputs, expect="any", save="code")
    program.destroy("asked")
    # Not through the NPU of the test: a refusal's error line in the log is what was asked for here.
    reply = npu.session.execute(program)
    code = reply["values"]["code"]
    if code != 0:
        return f"returns {code_name(code)}"
    errors = [line.strip() for line in str(reply["log"]).splitlines() if line.lstrip().startswith("E RKNN")]
    return f"returns RKNN_SUCC, but logs {errors[-1]!r}" if errors else None


def compare(npu: Npu, model: LoadedModel, samples: Sequence[Sample], masks: dict[str, int]) -> None:
    """With each of the ``masks``, by their names.

    ConformanceFailure: other bytes. Inconclusive: nothing was compared, or nothing would have shown.
    """
    answer = ask_lite(npu, model, [sample.case for sample in samples], list(masks.values()))
    board = npu.session.board.name
    other = why_another_runtime(answer, npu.session.versions)
    if other is not None:
        raise Inconclusive(f"{board}: {other}")
    _note(npu, answer)
    compared = [
        data
        for (name, mask), outputs in zip(masks.items(), answer.outputs, strict=True)
        for data in _compare_with_mask(npu, model, samples, outputs, mask, name)
    ]
    npu.record.measure("samples compared", len(compared))
    if not compared:
        raise Inconclusive(f"{board}: nothing was compared; the notes say why")
    if len(set(compared)) == 1:
        raise Inconclusive(f"{board}: mistrusted: every sample gave the same output, whatever the input")


def _compare_with_mask(
    npu: Npu,
    model: LoadedModel,
    samples: Sequence[Sample],
    answers: Sequence[tuple[LiteOutput, ...] | str],
    mask: int,
    name: str,
) -> list[bytes]:
    """What was the same, one entry for each sample that was compared."""
    expected = by_the_general_api(npu, model, samples, mask)
    compared = []
    for sample, outputs, given in zip(samples, answers, expected, strict=True):
        what = ", ".join(word for word in (model.name, name, str(sample.form)) if word)
        if isinstance(outputs, str):
            npu.record.note(f"not compared: {what}: {outputs}")
        else:
            compared.append(_require_equal(npu, what, outputs, given))
    return compared


def _note(npu: Npu, answer: LiteAnswer) -> None:
    npu.record.note(f"RKNN-Toolkit-Lite2 {answer.version or 'of unknown version'}")
    if answer.libraries:
        npu.record.note(f"it has loaded {', '.join(answer.libraries)}")


def _require_equal(npu: Npu, what: str, outputs: tuple[LiteOutput, ...], given: Outputs) -> bytes:
    """Compare every output with what the general API gives in that type; returns all bytes in a row."""
    if len(outputs) != len(given.as_float):
        raise ConformanceFailure(
            f"board {npu.session.board.name}: {what}: RKNN-Toolkit-Lite2 returns {len(outputs)} outputs, the "
            f"general API {len(given.as_float)}"
        )
    for index, output in enumerate(outputs):
        is_float = output.dtype == "float32"
        expected = (given.as_float if is_float else given.as_it_is)[index]
        way = "want_float=1" if is_float else "want_float=0"
        npu.require_equal(
            expected,
            output.data,
            f"{what}: output {index} ({output.dtype} {output.shape}) of RKNN-Toolkit-Lite2 against "
            f"rknn_outputs_get with {way}",
        )
    return b"".join(output.data for output in outputs)


def by_the_general_api(
    npu: Npu, model: LoadedModel, samples: Sequence[Sample], core_mask: int
) -> list[Outputs]:
    """rknn_inputs_set, rknn_run, rknn_outputs_get for each sample, once for each value of want_float."""
    count = len(model.description.outputs)
    program = Program()
    program.init("general", model.sha256)
    if core_mask:
        program.set_core_mask("general", core_mask)
    for number, sample in enumerate(samples):
        for want_float in (True, False):
            program.set_inputs("general", sample.inputs)
            program.run("general")
            program.get_outputs("general", f"{number} {want_float}", count=count, want_float=want_float)
    program.destroy("general")
    values = npu.execute(program)
    return [Outputs(values[f"{number} True"], values[f"{number} False"]) for number in range(len(samples))]

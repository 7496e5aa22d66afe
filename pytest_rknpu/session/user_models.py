"""The user's models (``[[model]]`` of boards.toml) as sessions use them: what their files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu.inventory.model_files import listed_samples
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.models.execute import run_onnx_inputs
from pytest_rknpu.models.user_data import Floats, InputForm, Samples, read_listed, read_samples
from pytest_rknpu.session.description import ModelDescription, with_shapes
from pytest_rknpu.session.user_faults import table_of, users_fault
from pytest_rknpu.session.user_graphs import cut_onnx, output_shapes
from pytest_rknpu.session.user_sources import input_forms, read_source
from pytest_rknpu.toolchain.source import missing_companion

if TYPE_CHECKING:
    from pytest_rknpu.inventory.model_table import ModelTable
    from pytest_rknpu.toolchain import CompileOptions, ModelSource

#: Where float models that ONNX Runtime does not read are simulated in float16: a SoC that takes float16.
_FLOAT_PLATFORM = "rk3588"
#: Which platforms build a quantised type (Toolkit2 2.5.0, ``config``); the others it refuses.
_DTYPE_PLATFORMS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"w8a16": frozenset({"rk3562"}), "w4a16": frozenset({"rk3576", "rv1126b"})}
)


@dataclass(frozen=True, eq=False)
class UserModel:
    """One ``[[model]]`` table with access to what its files hold; each is read once, when first asked for.

    Whatever cannot be used is a UserModelError that names the table.
    """

    table: ModelTable

    @property
    def name(self) -> str:
        """Its name in boards.toml."""
        return self.table.name

    @cached_property
    def source(self) -> ModelSource | None:
        """How the toolkit loads it; None where there are only ready .rknn files."""
        with users_fault(self.name):
            return read_source(self.table) if self.table.path is not None else None

    @cached_property
    def forms(self) -> tuple[InputForm, ...]:
        """Its inputs, as the table and the graph tell them."""
        with users_fault(self.name):
            return input_forms(self.table, self.source)

    @property
    def is_onnx(self) -> bool:
        """Whether ONNX Runtime can run it."""
        return self.source is not None and self.source.loader == "load_onnx"

    @property
    def qdq_onnx(self) -> bytes | None:
        """The QDQ graph that an emulated board needs, if it is one."""
        return self.onnx if self.is_onnx and self.table.built_dtype == "prequantised" else None

    @cached_property
    def onnx(self) -> bytes:
        """The ONNX graph between the table's inputs and outputs."""
        assert self.source is not None
        names = [form.name for form in self.forms if form.name is not None] if self.table.inputs else []
        with users_fault(self.name):
            return cut_onnx(self.source.files["model"][1], names, self.table.outputs)

    @cached_property
    def calibration(self) -> Samples | None:
        """The arrays that it is quantised on; None without ``calibration``, or where that names pictures."""
        if self.table.calibration is None:
            return None
        where, file = table_of(self.name, "calibration"), Path(self.table.calibration)
        with users_fault(self.name):
            if file.suffix.lower() == ".txt":
                return read_listed(where, listed_samples(file), self.forms)
            return read_samples(where, file, self.forms)

    @cached_property
    def samples(self) -> Samples | None:
        """What accuracy is measured on: the labelled set, else the calibration arrays."""
        if self.table.labelled is None:
            return self.calibration
        where, file = table_of(self.name, "labelled"), Path(self.table.labelled)
        with users_fault(self.name):
            return read_samples(where, file, self.forms, labelled=True)

    def normalised(self, inputs: Sequence[Floats]) -> tuple[Floats, ...]:
        """The inputs after ``mean`` and ``std``: what the graph itself takes."""
        if not self.table.mean:
            return tuple(inputs)
        (array,) = inputs
        nchw = array.ndim == 4 and not self.forms[0].graph_nhwc
        shape = (-1, 1, 1) if nchw else (-1,)
        mean, std = (np.reshape(np.asarray(values), shape) for values in (self.table.mean, self.table.std))
        return (np.asarray((array - mean) / std, dtype=np.float32),)

    def options(self, platform: str, *, sparse_infer: bool | None = None) -> CompileOptions:
        """What the toolkit is to build for ``platform``.

        ``sparse_infer`` None: where the model declares a mode and the SoC has sparse inference. Skips with
        the proof where the SoC does not take the model's data type.
        """
        from pytest_rknpu.toolchain import CompileOptions

        dtype = self.table.built_dtype
        self._require_dtype(platform)
        if sparse_infer is None:
            sparse_infer = self.table.sparse is not None and SOCS[platform].sparse
        swap = {"quant_img_RGB2BGR": True} if self.table.channel_order == "bgr" else {}
        quantises = dtype not in ("float16", "prequantised")
        arrays = self.calibration if quantises else None
        files = listed_samples(Path(str(self.table.calibration))) if quantises and arrays is None else []
        return CompileOptions(
            target_platform=platform,
            calibration=None if arrays is None else arrays.inputs,
            calibration_files=tuple(tuple(line) for line in files),
            quantized_dtype=dtype if quantises else "w8a8",
            sparse_infer=sparse_infer,
            mean_values=self.table.mean or None,
            std_values=self.table.std or None,
            config=swap,
        )

    def _require_dtype(self, platform: str) -> None:
        dtype = self.table.built_dtype
        if platform not in _DTYPE_PLATFORMS.get(dtype, {platform}):
            taken = ", ".join(sorted(_DTYPE_PLATFORMS[dtype]))
            pytest.skip(
                f"{self.name} is {dtype}, which RKNN-Toolkit2 builds for {taken} only, not for {platform}"
            )
        if dtype == "float16" and SOCS[platform].runtime == "librknnmrt":
            pytest.skip(f"{self.name} is float16, which RKNN-Toolkit2 does not build for {platform}")

    def described(self, description: ModelDescription) -> ModelDescription:
        """What the runtime says, with the logical shapes of the graph where it tells them.

        The mini runtime tells native shapes only. ConformanceFailure: another number of inputs or outputs.
        """
        inputs = [form.shape for form in self.forms]
        if self.source is None or None in inputs or any(form.graph_nhwc for form in self.forms):
            return description
        outputs = output_shapes(self.onnx) if self.is_onnx else ()
        told = [tensor.shape for tensor in description.outputs]
        return with_shapes(description, [shape for shape in inputs if shape is not None], outputs or told)

    def float_outputs(self, inputs: Sequence[Floats]) -> tuple[list[Floats], str]:
        """The float model's outputs, each (N, ...), and by what they were computed.

        ONNX by ONNX Runtime, in float32 (a QDQ file as it is); other formats by the toolkit's own simulator,
        in float16. Skips with the proof where there is only a ready .rknn file.
        """
        source = self.require_source()
        with users_fault(self.name):
            return self._onnx_outputs(inputs) if self.is_onnx else self._simulated_outputs(source, inputs)

    def _onnx_outputs(self, inputs: Sequence[Floats]) -> tuple[list[Floats], str]:
        names = [form.name for form in self.forms]
        kind = "the quantised graph itself" if self.qdq_onnx is not None else "float32"
        outputs = run_onnx_inputs(self.onnx, self.normalised(inputs), names)
        return outputs, f"ONNX Runtime, {kind}"

    def _simulated_outputs(self, source: ModelSource, inputs: Sequence[Floats]) -> tuple[list[Floats], str]:
        from pytest_rknpu.toolchain import CompileOptions, simulation_of

        options = CompileOptions(
            _FLOAT_PLATFORM, mean_values=self.table.mean or None, std_values=self.table.std or None
        )
        simulation = simulation_of(source, options, with_batch(inputs))
        computed_by = f"RKNN-Toolkit2's simulator, float16 ({_FLOAT_PLATFORM})"
        return simulation.outputs, ", ".join(filter(None, (computed_by, simulation.stored)))

    def require_source(self) -> ModelSource:
        """The source. Skips with the proof where there are ready .rknn files only, and where the package is
        missing by which the toolkit loads it."""
        if self.source is None:
            pytest.skip(
                f"{table_of(self.name)} has no path: a ready .rknn file has no float model, and "
                "RKNN-Toolkit2 does not simulate one (init_runtime() without target returns -1 then)"
            )
        reason = missing_companion(self.source.loader)
        if reason is not None:
            pytest.skip(f"{table_of(self.name)}: {reason}")
        return self.source


def with_batch(inputs: Sequence[NDArray[np.float32]]) -> list[Floats]:
    """(N, ...) to (N, 1, ...): each row becomes a sample with the graph's leading 1."""
    return [array[:, np.newaxis] for array in inputs]


class UserModels:
    """The models of one boards.toml by name; each is loaded once, when first asked for."""

    def __init__(self, tables: Sequence[ModelTable] = ()) -> None:
        self._models = {table.name: UserModel(table) for table in tables}

    def get(self, name: str) -> UserModel | None:
        """The user's model of that name, or None: then it is one that is shipped."""
        return self._models.get(name)

"""What a ``[[model]]`` table of boards.toml may say: a model of the user's, for the suites to run.

A model is described once: what RKNN-Toolkit2 needs to load and build it (Toolkit2 API reference, ``config``,
``load_*``, ``build``), what it is fed with, and what its owner holds it to. Combinations that cannot be meant
are refused (`model_rules`), missing files too (`model_files`); what the files hold is looked at when a test
needs it (`pytest_rknpu.models.user_data`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.model_formats import FORMATS, Dtype, Format, Layout
from pytest_rknpu.inventory.model_rules import misfits
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.inventory.words import File, Name, Text

ChannelOrder = Literal["rgb", "bgr"]
TensorName = Annotated[str, Field(min_length=1, max_length=255)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Value = TypeVar("Value")


class InputTable(BaseModel):
    """One entry of ``inputs``. ``shape`` is the graph's; ``layout`` says how the data sets lie."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: TensorName | None = Field(default=None, description="What the graph calls it.", examples=["input"])
    shape: tuple[Annotated[int, Field(ge=1, le=2**31 - 1)], ...] = Field(
        min_length=1,
        max_length=16,
        description="As the graph has it; it begins with 1, one sample at a time.",
        examples=[[1, 3, 224, 224]],
    )
    layout: Layout | None = Field(
        default=None,
        description="How four dimensions lie in the data sets; the graph's own where it is left out.",
        examples=["nhwc"],
    )

    @field_validator("shape", mode="before")
    @classmethod
    def _list_as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _shape_fits(self) -> InputTable:
        if self.shape[0] != 1:
            raise ValueError(f"shape begins with {self.shape[0]}, it has to with 1: one sample at a time")
        if self.layout is not None and len(self.shape) != 4:
            raise ValueError(f"layout is for shapes of four dimensions, this one has {len(self.shape)}")
        return self


class ToleranceTable(BaseModel):
    """One entry of ``tolerances``: how far an output may be from the float model's, for the worst sample.

    ``max_error`` and ``bias`` are in the unit of the output, ``sqnr_db`` in decibel. What is left out is not
    judged.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    cosine: Annotated[float, Field(ge=-1, le=1)] | None = Field(
        default=None,
        description="The cosine of both outputs is no smaller.",
        examples=[0.99],
    )
    sqnr_db: Finite | None = Field(
        default=None,
        description="The ratio of signal to quantisation noise is no smaller.",
        examples=[20.0],
    )
    max_error: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="No element differs by more, in the unit of the output.",
        examples=[0.5],
    )
    bias: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="The mean difference is no larger, in the unit of the output.",
        examples=[0.05],
    )

    @model_validator(mode="after")
    def _says_something(self) -> ToleranceTable:
        if not self.model_fields_set:
            raise ValueError("declares nothing; give cosine, sqnr_db, max_error or bias")
        return self


def _tuple(value: object) -> object:
    """TOML has lists; strict mode wants the tuple that a frozen table holds."""
    return tuple(value) if isinstance(value, list) else value


class LimitsTable(BaseModel):
    """One entry of ``per_soc``: what stands in the place of the model's own limits there."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tolerances: tuple[ToleranceTable, ...] = Field(
        default=(),
        max_length=64,
        description="In the place of the model's own.",
        examples=[[{"cosine": 0.98}]],
    )
    top1_drop: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="In the place of the model's own.",
        examples=[0.02],
    )
    cpu_operators: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None,
        description="In the place of the model's own.",
        examples=[2],
    )

    @field_validator("tolerances", mode="before")
    @classmethod
    def _list_as_tuple(cls, value: object) -> object:
        return _tuple(value)

    @model_validator(mode="after")
    def _says_something(self) -> LimitsTable:
        if not self.model_fields_set:
            raise ValueError("declares nothing; give tolerances, top1_drop or cpu_operators")
        return self


class ModelTable(BaseModel):
    """One ``[[model]]`` table. Paths are as written until `model_files.read_models` makes them absolute."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name = Field(
        description="What node ids and reports call the model: lower-case letters, digits, `_`, `.` and `-`, "
        "unique in the file, and not the name of a model that is shipped.",
        examples=["mobilenet-v2"],
    )
    path: File | None = Field(
        default=None,
        description="The model: `.onnx`, `.tflite`, TorchScript (`.pt`, `.pth`, `.torchscript`), frozen "
        "TensorFlow graph (`.pb`), Caffe (`.prototxt`, with `weights`). All paths of a table start at the "
        "folder of boards.toml.",
        examples=["mobilenetv2-12.onnx"],
    )
    weights: File | None = Field(
        default=None,
        description="The `.caffemodel` of a Caffe model.",
        examples=["mobilenet_v2.caffemodel"],
    )
    rknn: Mapping[str, File] = Field(
        default_factory=dict,
        description="Ready `.rknn` files by SoC, for boards; nothing is built for these then. With `path` "
        "beside them they are held against its float model.",
        examples=[{"rk3588": "build/mobilenet_rk3588.rknn"}],
    )
    inputs: tuple[InputTable, ...] = Field(
        default=(),
        max_length=16,
        description="The graph's inputs in order: `name`, `shape` (as the graph has it), `layout` (`nchw` or "
        "`nhwc`: how the data sets lie; the graph's own where it is left out). Needed where the file does "
        "not say: TorchScript, TensorFlow, and ONNX with free dimensions.",
        examples=[[{"name": "input", "shape": [1, 3, 224, 224], "layout": "nhwc"}]],
    )
    outputs: tuple[TensorName, ...] = Field(
        default=(),
        max_length=64,
        description="Where the graph is cut: ONNX and TensorFlow.",
        examples=[["output"]],
    )
    mean: tuple[Finite, ...] = Field(
        default=(),
        description="Subtracted from the data by the built model, one number per channel (`mean_values`). "
        "The data sets then hold what comes before that, the float model gets what comes after.",
        examples=[[123.675, 116.28, 103.53]],
    )
    std: tuple[Finite, ...] = Field(
        default=(),
        description="Divided by after that, one number per channel (`std_values`).",
        examples=[[58.395, 57.12, 57.375]],
    )
    channel_order: ChannelOrder | None = Field(
        default=None,
        description="Which order of channels the model takes, for pictures that a calibration list names: "
        "with `bgr` the toolkit swaps them (`quant_img_RGB2BGR`). Arrays are taken as they are.",
        examples=["bgr"],
    )
    calibration: File | None = Field(
        default=None,
        description="What the model is quantised on: `.npz` (an array (N, ...) per input, by the input's "
        "name; any name if there is one), `.npy` (one input), or a `.txt` list as the toolkit takes it (a "
        "line per sample: `.npy` files, one per input, or a picture).",
        examples=["calibration.npz"],
    )
    labelled: File | None = Field(
        default=None,
        description="Held-out data for the accuracy tests: an `.npz` as above, with `labels` (N,) beside the "
        "inputs; without it the calibration arrays serve, and top-1 is not judged.",
        examples=["labelled.npz"],
    )
    dtype: Dtype | None = Field(
        default=None,
        description="`quantized_dtype` of the toolkit, `float16`, or `prequantised` (the file is quantised "
        "already, as QDQ ONNX is; emulated boards run only that). Default: `w8a8` with `calibration`, else "
        "`float16`.",
        examples=["w8a8"],
    )
    sparse: Annotated[int, Field(ge=0, le=3)] | None = Field(
        default=None,
        description="The mode (guide, 4.1.7) that the weights were pruned by. The model is then built with "
        "`sparse_infer` where the SoC has it, and held to it.",
        examples=[0],
    )
    tolerances: tuple[ToleranceTable, ...] = Field(
        default=(),
        max_length=64,
        description="How far outputs may be from the float model's, worst sample: `cosine`, `sqnr_db`, "
        "`max_error`, `bias`; one entry for all outputs, or one for each. Without it accuracy is measured, "
        "not judged.",
        examples=[[{"cosine": 0.99, "sqnr_db": 20.0}]],
    )
    top1_drop: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="The share of `labelled` by which top-1 may be lower than the float model's.",
        examples=[0.01],
    )
    float_top1: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="The share of `labelled` that the float model itself gets right at least. Where it does "
        "not, mean, std, layout or channel order are not what the model was made with: nothing is judged.",
        examples=[0.7],
    )
    cpu_operators: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None,
        description="How many operators may fall to the CPU (ACC-06), inputs and outputs not counted; "
        "without it they are measured.",
        examples=[0],
    )
    per_soc: Mapping[str, LimitsTable] = Field(
        default_factory=dict,
        description="Limits for single SoCs, in the place of the three above: `tolerances`, `top1_drop`, "
        "`cpu_operators`. Time and memory per SoC: `[[budget]]`.",
        examples=[{"rk3566": {"cpu_operators": 2}}],
    )
    dense: Name | None = Field(
        default=None,
        description="The `[[model]]` that this one was pruned from: both are held against each other on "
        "`labelled` (SPARSE-05).",
        examples=["mobilenet-v2"],
    )
    pruning_loss: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="The share of `labelled` that pruning may cost against `dense`, shown at 95 % "
        "confidence.",
        examples=[0.02],
    )
    note: Text | None = Field(
        default=None, description="Anything a reader should know.", examples=["exported by the vision team"]
    )

    @field_validator("inputs", "outputs", "mean", "std", "tolerances", mode="before")
    @classmethod
    def _list_as_tuple(cls, value: object) -> object:
        return _tuple(value)

    @field_validator("rknn")
    @classmethod
    def _rknn_by_soc(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for soc, file in value.items():
            if not file.lower().endswith(".rknn"):
                raise ValueError(f"{soc}: {file} is no .rknn file")
        return _by_platform(value)

    @field_validator("per_soc")
    @classmethod
    def _limits_by_soc(cls, value: Mapping[str, LimitsTable]) -> Mapping[str, LimitsTable]:
        return _by_platform(value)

    @model_validator(mode="after")
    def _keys_fit(self) -> ModelTable:
        problems = [f'key "{key}": {sentence}' for key, sentence in misfits(self)]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def on(self, platform: str) -> ModelTable:
        """The table with the limits that hold on a SoC (the toolkit's name of it)."""
        limits = self.per_soc.get(platform)
        if limits is None:
            return self
        return self.model_copy(update={key: getattr(limits, key) for key in limits.model_fields_set})

    @property
    def format(self) -> Format | None:
        """How the toolkit takes ``path``; None where there is none."""
        return None if self.path is None else FORMATS.get(PurePosixPath(self.path).suffix.lower())

    @property
    def built_dtype(self) -> Dtype:
        """``dtype``, or what it is where it was left out."""
        return self.dtype or ("w8a8" if self.calibration is not None else "float16")


def _by_platform(value: Mapping[str, Value]) -> Mapping[str, Value]:
    """The same by the toolkit's name of each SoC. ValueError: an unknown SoC, or one that is named twice."""
    found: dict[str, Value] = {}
    for soc, entry in value.items():
        try:
            name = find_soc(soc).toolkit_platform
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        if name in found:
            raise ValueError(f"{soc} and another entry are the same SoC, {name}")
        found[name] = entry
    return MappingProxyType(found)

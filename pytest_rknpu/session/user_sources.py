"""From the path of a ``[[model]]`` to how RKNN-Toolkit2 loads it, and the inputs of its graph."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import ConfigurationError, ModelError
from pytest_rknpu.inventory.model_formats import QUANTISED_DTYPES
from pytest_rknpu.inventory.wording import did_you_mean
from pytest_rknpu.models.user_data import InputForm
from pytest_rknpu.session.user_faults import table_of
from pytest_rknpu.session.user_graphs import OnnxGraph, read_graph

if TYPE_CHECKING:
    from pytest_rknpu.inventory.model_table import ModelTable
    from pytest_rknpu.toolchain import ModelSource

#: The keyword by which each loader takes its file (Toolkit2 API reference 2.3).
_FILE_KEYWORD = {"load_tensorflow": "tf_pb"}


def read_source(table: ModelTable) -> ModelSource:
    """Read the files of a table with a ``path``.

    ModelError: a file is missing, empty, or not what its suffix says as far as that shows without the
    toolkit. ConfigurationError: an ONNX graph contradicts the table.
    """
    from pytest_rknpu.toolchain import ModelSource

    form, path = table.format, Path(str(table.path))
    assert form is not None  # model_rules refuses other suffixes
    if form.loader == "load_onnx":
        content = _onnx(table, path)
        graph = read_graph(content)
        _require_dtype(table, graph)
        return ModelSource(form.loader, {"model": ("model.onnx", content)}, _onnx_keywords(table, graph))
    if form.loader == "load_pytorch":
        _require_torchscript(table, path)
    files = {_FILE_KEYWORD.get(form.loader, "model"): (path.name, _content(table, "path", path))}
    if table.weights is not None:
        files["blobs"] = (Path(table.weights).name, _content(table, "weights", Path(table.weights)))
    return ModelSource(form.loader, files, _keywords(table, form.loader), form.layout)


def _onnx(table: ModelTable, path: Path) -> bytes:
    from pytest_rknpu.toolchain.onnx_file import read_onnx

    try:
        return read_onnx(path)
    except ModelError as error:
        raise ModelError(f"{table_of(table.name, 'path')}: {error}") from None


def _require_dtype(table: ModelTable, graph: OnnxGraph) -> None:
    """What is quantised already is not quantised again, and what is not cannot be called so."""
    where, dtype = table_of(table.name, "dtype"), table.built_dtype
    if graph.quantised and dtype != "prequantised":
        raise ConfigurationError(
            f'{where}: is "{dtype}", but the graph of {table.path} is quantised already (it has '
            'QuantizeLinear or DequantizeLinear): say "prequantised", or give the float model'
        )
    if not graph.quantised and dtype == "prequantised":
        others = ", ".join(f'"{name}"' for name in sorted(QUANTISED_DTYPES))
        raise ConfigurationError(
            f'{where}: is "prequantised", but {table.path} is a float graph (it has no QuantizeLinear): '
            f"leave dtype out, or say {others} with a calibration set"
        )


def _content(table: ModelTable, key: str, path: Path) -> bytes:
    where = table_of(table.name, key)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{where}: cannot read {path}: {error.strerror}") from None
    if not content:
        raise ModelError(f"{where}: {path} is empty")
    return content


def _require_torchscript(table: ModelTable, path: Path) -> None:
    """A file of ``torch.jit.save`` has a constants.pkl, which a state dict or a pickled module has not."""
    try:
        with zipfile.ZipFile(path) as archive:
            if any(Path(name).name == "constants.pkl" for name in archive.namelist()):
                return
            reason = "a state dict or a pickled module has no graph"
    except (OSError, zipfile.BadZipFile):
        reason = "it is no archive of PyTorch"
    raise ModelError(
        f"{table_of(table.name, 'path')}: {path} is not what torch.jit.save writes ({reason}); "
        "trace or script the model first"
    )


def _keywords(table: ModelTable, loader: str) -> dict[str, Any]:
    """The loader's keywords beside its files, of formats other than ONNX."""
    keywords: dict[str, Any] = {}
    if loader in ("load_pytorch", "load_tensorflow"):
        keywords["input_size_list"] = [list(entry.shape) for entry in table.inputs]
    if loader == "load_tensorflow":
        keywords["inputs"] = [entry.name for entry in table.inputs]
    if table.outputs:
        keywords["outputs"] = list(table.outputs)
    return keywords


def _onnx_keywords(table: ModelTable, graph: OnnxGraph) -> dict[str, Any]:
    """Where the graph is cut, and what its free dimensions are. ConfigurationError: it has no such tensor."""
    keywords: dict[str, Any] = {}
    if table.inputs:
        names = [form.name for form in _told_forms(table, graph)]
        keywords = {"inputs": names, "input_size_list": [list(entry.shape) for entry in table.inputs]}
        _require_tensors(table, "inputs", [name or "" for name in names], graph)
    if table.outputs:
        keywords["outputs"] = list(table.outputs)
        _require_tensors(table, "outputs", table.outputs, graph)
    return keywords


def _require_tensors(table: ModelTable, key: str, names: Sequence[str], graph: OnnxGraph) -> None:
    for name in names:
        if name not in graph.tensors:
            hint = (
                did_you_mean(name, graph.tensors) or f"; its inputs: {', '.join(n for n, _ in graph.inputs)}"
            )
            raise ConfigurationError(
                f"{table_of(table.name, key)}: the graph of {table.path} has no tensor {name!r}{hint}"
            )


def input_forms(table: ModelTable, source: ModelSource | None) -> tuple[InputForm, ...]:
    """The model's inputs: what the table says, and what an ONNX graph says where the table is silent.

    ConfigurationError: the table contradicts the graph, or neither tells the shape.
    """
    if source is not None and source.loader == "load_onnx":
        graph = read_graph(source.files["model"][1])
        forms = _told_forms(table, graph) if table.inputs else _graph_forms(table, graph)
    else:
        nhwc = source is not None and source.layout == "nhwc"
        forms = _declared(table, nhwc) or (InputForm(None, None, nhwc, nhwc),)
    _require_channels(table, forms)
    return forms


def _declared(table: ModelTable, graph_nhwc: bool) -> tuple[InputForm, ...]:
    """What the table alone says."""
    return tuple(
        InputForm(
            entry.name,
            entry.shape,
            graph_nhwc if entry.layout is None else entry.layout == "nhwc",
            graph_nhwc,
        )
        for entry in table.inputs
    )


def _told_forms(table: ModelTable, graph: OnnxGraph) -> tuple[InputForm, ...]:
    """What the table says, with the graph's names where it gives none."""
    told = _declared(table, graph_nhwc=False)
    _require_agreement(table, told, graph)
    return tuple(
        form if form.name else InputForm(graph.inputs[position][0], form.shape, form.data_nhwc)
        for position, form in enumerate(told)
    )


def _graph_forms(table: ModelTable, graph: OnnxGraph) -> tuple[InputForm, ...]:
    for name, shape in graph.inputs:
        if 0 in shape or not shape or shape[0] != 1:
            raise ConfigurationError(
                f"{table_of(table.name, 'inputs')}: missing; input {name!r} of the graph has shape "
                f"{[size or '?' for size in shape]}, and it has to be one sample of known size"
            )
    return tuple(InputForm(name, shape) for name, shape in graph.inputs)


def _require_channels(table: ModelTable, forms: Sequence[InputForm]) -> None:
    """mean and std have a number for each channel; the toolkit says so only when it loads the model."""
    if not table.mean:
        return
    if len(forms) > 1:
        raise ConfigurationError(
            f"{table_of(table.name, 'mean')}: only for models with one input, this one has {len(forms)}; "
            "normalise the data sets instead"
        )
    shape = forms[0].shape
    if shape is None or len(shape) != 4:
        return
    channels = shape[3 if forms[0].graph_nhwc else 1]
    if len(table.mean) != channels:
        raise ConfigurationError(
            f"{table_of(table.name, 'mean')}: has {len(table.mean)} numbers, the model's input has "
            f"{channels} channels; mean and std need one for each"
        )


def _require_agreement(table: ModelTable, told: Sequence[InputForm], graph: OnnxGraph) -> None:
    """The table may name tensors inside the graph (it is cut there) and fix free dimensions; no more."""
    where, known = table_of(table.name, "inputs"), dict(graph.inputs)
    if any(form.name is None for form in told) and len(told) != len(graph.inputs):
        raise ConfigurationError(
            f"{where}: has {len(told)} entries, the graph has {len(graph.inputs)} inputs"
        )
    for position, form in enumerate(told):
        name = form.name or graph.inputs[position][0]
        shape = known.get(name)
        if shape is None or form.shape is None:
            continue
        fits = len(shape) == len(form.shape) and all(
            fixed in (0, given) for fixed, given in zip(shape, form.shape, strict=True)
        )
        if not fits:
            free = [size or "?" for size in shape]
            raise ConfigurationError(
                f"{where}: {name!r} has shape {list(form.shape)} here, and {free} in the graph"
            )

"""From the path of a ``[[model]]`` to how RKNN-Toolkit2 loads it, and what its graph says of its inputs."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import ConfigurationError, ModelError
from pytest_rknpu.models.user_data import InputForm

if TYPE_CHECKING:
    from pytest_rknpu.inventory.model_table import ModelTable
    from pytest_rknpu.toolchain import ModelSource

#: The keyword by which each loader takes its file (Toolkit2 API reference 2.3).
_FILE_KEYWORD = {"load_tensorflow": "tf_pb"}


def read_source(table: ModelTable) -> ModelSource:
    """Read the files of a table with a ``path``.

    ModelError: a file is missing, empty, or not what its suffix says as far as that shows without the
    toolkit.
    """
    from pytest_rknpu.toolchain import ModelSource

    form, path = table.format, Path(str(table.path))
    assert form is not None  # model_rules refuses other suffixes
    content = _content(table, "path", path)
    files = {_FILE_KEYWORD.get(form.loader, "model"): (path.name, content)}
    if form.loader == "load_onnx":
        from pytest_rknpu.toolchain.onnx_file import read_onnx

        files = {"model": ("model.onnx", read_onnx(path))}
    if form.loader == "load_pytorch":
        _require_torchscript(table, path)
    if table.weights is not None:
        files["blobs"] = (Path(table.weights).name, _content(table, "weights", Path(table.weights)))
    return ModelSource(form.loader, files, _keywords(table, form.loader), form.layout)


def _content(table: ModelTable, key: str, path: Path) -> bytes:
    where = f'[[model]] "{table.name}", key "{key}"'
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
        f'[[model]] "{table.name}", key "path": {path} is not what torch.jit.save writes ({reason}); '
        "trace or script the model first"
    )


def _keywords(table: ModelTable, loader: str) -> dict[str, Any]:
    """The loader's keywords beside its files."""
    shapes = [list(entry.shape) for entry in table.inputs]
    names = [entry.name for entry in table.inputs]
    keywords: dict[str, Any] = {}
    if loader in ("load_pytorch", "load_tensorflow"):
        keywords["input_size_list"] = shapes
    elif loader == "load_onnx" and names and None not in names:
        keywords |= {"inputs": names, "input_size_list": shapes}
    if loader == "load_tensorflow":
        keywords["inputs"] = names
    if table.outputs:
        keywords["outputs"] = list(table.outputs)
    return keywords


def input_forms(table: ModelTable, source: ModelSource | None) -> tuple[InputForm, ...]:
    """The model's inputs: what the table says, and what an ONNX graph says where the table is silent.

    ConfigurationError: the table contradicts the graph, or neither tells the shape.
    """
    nhwc = source is not None and source.layout == "nhwc"
    told = tuple(
        InputForm(
            entry.name, entry.shape, (entry.layout == "nhwc") if entry.layout is not None else nhwc, nhwc
        )
        for entry in table.inputs
    )
    if source is None or source.loader != "load_onnx":
        return told or (InputForm(None, None, nhwc, nhwc),)
    graph = _graph_inputs(source.files["model"][1])
    if told:
        _require_agreement(table, told, graph)
        names = [name for name, _ in graph]
        return tuple(
            form if form.name else InputForm(names[position], form.shape, form.data_nhwc, nhwc)
            for position, form in enumerate(told)
        )
    for name, shape in graph:
        if 0 in shape or not shape or shape[0] != 1:
            raise ConfigurationError(
                f'[[model]] "{table.name}", key "inputs": missing; input {name!r} of the graph has shape '
                f"{[size or '?' for size in shape]}, and it has to be one sample of known size"
            )
    return tuple(InputForm(name, shape) for name, shape in graph)


def _graph_inputs(content: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """(name, shape) of each input that is no constant; a free dimension is 0."""
    import onnx

    graph = onnx.load_model_from_string(content).graph
    constants = {constant.name for constant in graph.initializer}
    return [
        (value.name, tuple(d.dim_value for d in value.type.tensor_type.shape.dim))
        for value in graph.input
        if value.name not in constants
    ]


def output_shapes(content: bytes) -> tuple[tuple[int, ...], ...]:
    """The shapes of an ONNX graph's outputs; empty where one of them is not known beforehand."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(content)).graph
    shapes = tuple(tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in graph.output)
    return shapes if all(shape and 0 not in shape for shape in shapes) else ()


def _require_agreement(
    table: ModelTable, told: Sequence[InputForm], graph: Sequence[tuple[str, tuple[int, ...]]]
) -> None:
    """The table may name tensors inside the graph (it is cut there) and fix free dimensions; no more."""
    where = f'[[model]] "{table.name}", key "inputs"'
    known = dict(graph)
    unnamed = any(form.name is None for form in told)
    if unnamed and len(told) != len(graph):
        raise ConfigurationError(f"{where}: has {len(told)} entries, the graph has {len(graph)} inputs")
    for position, form in enumerate(told):
        name = form.name or graph[position][0]
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


def cut_onnx(content: bytes, inputs: Sequence[str], outputs: Sequence[str], name: str) -> bytes:
    """The part of an ONNX graph between named tensors; the graph itself where none are named.

    ModelError: it cannot be cut there.
    """
    if not inputs and not outputs:
        return content
    import onnx
    import onnx.utils

    model = onnx.load_model_from_string(content)
    constants = {constant.name for constant in model.graph.initializer}
    own_inputs = [value.name for value in model.graph.input if value.name not in constants]
    own_outputs = [value.name for value in model.graph.output]
    wanted = (list(inputs) or own_inputs, list(outputs) or own_outputs)
    if wanted == (own_inputs, own_outputs):
        return content
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
        part = onnx.utils.Extractor(inferred).extract_model(*wanted)
        onnx.checker.check_model(part)
    except Exception as error:  # KeyError, ValueError, ValidationError: onnx has no common base
        raise ModelError(
            f'[[model]] "{name}": the graph cannot be cut between {wanted[0]} and {wanted[1]}: {error}'
        ) from None
    cut: bytes = part.SerializeToString()
    return cut

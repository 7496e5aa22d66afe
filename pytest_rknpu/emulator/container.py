"""The file that an emulated board loads: magic, lengths, digest, a JSON header and a blob of weights and
sub-models.

    offset  size  what
    0       4     b"RKEM"
    4       4     version of this format, little-endian
    8       8     length of the whole file
    16      4     length of the header
    20      32    sha256 of everything behind it
    52      ..    header (JSON, UTF-8), then the blob

A real .rknn begins with b"RKNN": neither can be taken for the other.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pytest_rknpu.errors import ModelError

MAGIC = b"RKEM"
FORMAT_VERSION = 1
_PREFIX = struct.Struct("<4sIQI32s")


@dataclass(frozen=True)
class Tensor:
    """An int8 activation: real = (stored - zero_point) * scale. ``offset`` and ``size`` in the internal
    buffer, bytes.
    """

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    offset: int
    size: int


@dataclass(frozen=True)
class Weight:
    """A constant of a layer, fed from ``offset`` of the weight memory; ``dtype`` as numpy names it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int


@dataclass(frozen=True)
class Layer:
    """One step: ``graph`` (offset, size in the blob) is an ONNX model with ``feeds`` and ``weights`` as
    inputs.

    ``feeds`` are (input name, tensor index), ``output`` is a tensor index.
    """

    name: str
    operators: str
    feeds: tuple[tuple[str, int], ...]
    output: int
    weights: tuple[Weight, ...]
    graph: tuple[int, int]


@dataclass(frozen=True)
class Port:
    """An input or output of the model: its public name and the tensor it is."""

    name: str
    tensor: int


@dataclass(frozen=True)
class PackedModel:
    """A model as an emulated board runs it. Sizes in bytes.

    ``weights`` is (offset, size in the blob), or None where the weights were removed
    (RKNN_FLAG_SHARE_WEIGHT_MEM). ``needs_runtime`` is the oldest runtime that may load it, None for any.
    """

    target_platform: str
    compiler: str
    needs_runtime: str | None
    custom_string: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    layers: tuple[Layer, ...]
    internal_size: int
    weight_size: int
    weights: tuple[int, int] | None
    blob: bytes
    digest: str = ""


def encode(model: PackedModel) -> bytes:
    """The file of ``model``; equal models give equal bytes."""
    fields = asdict(model)
    del fields["blob"], fields["digest"]
    header = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    body = header + model.blob
    digest = hashlib.sha256(body).digest()
    return _PREFIX.pack(MAGIC, FORMAT_VERSION, _PREFIX.size + len(body), len(header), digest) + body


def decode(data: bytes, *, tolerate_truncation: bool = False) -> PackedModel:
    """Read a file; ModelError says what is wrong with one that is foreign, truncated or damaged.

    ``tolerate_truncation`` exists for the fault of that name: what is missing reads as zeros.
    """
    if tolerate_truncation:
        data = _lengthened(data)
    if len(data) < _PREFIX.size:
        raise ModelError(f"{len(data)} bytes are too few for a model")
    magic, version, length, header_length, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise ModelError(f"the magic is {magic!r}, not {MAGIC!r}")
    if version != FORMAT_VERSION:
        raise ModelError(f"format version {version}; this board knows {FORMAT_VERSION}")
    if length != len(data):
        raise ModelError(f"{len(data)} of {length} bytes")
    body = data[_PREFIX.size :]
    if hashlib.sha256(body).digest() != digest and not tolerate_truncation:
        raise ModelError("the digest does not fit the content")
    try:
        return _from_fields(json.loads(body[:header_length]), body[header_length:], digest.hex())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ModelError(f"the header is not one of a model: {error!r}") from error


def _lengthened(data: bytes) -> bytes:
    """``data`` with zeros up to the length that its prefix states."""
    if len(data) < _PREFIX.size or data[:4] != MAGIC:
        return data
    length: int = _PREFIX.unpack_from(data)[2]
    return data.ljust(length, b"\0")


def _from_fields(fields: dict[str, Any], blob: bytes, digest: str) -> PackedModel:
    def each(key: str, make: Callable[[dict[str, Any]], Any]) -> tuple[Any, ...]:
        return tuple(make(entry) for entry in fields.pop(key))

    return PackedModel(
        tensors=each("tensors", lambda entry: Tensor(**{**entry, "shape": tuple(entry["shape"])})),
        inputs=each("inputs", lambda entry: Port(**entry)),
        outputs=each("outputs", lambda entry: Port(**entry)),
        layers=each("layers", _layer),
        weights=_pair(fields.pop("weights")),
        blob=blob,
        digest=digest,
        **fields,
    )


def _layer(entry: dict[str, Any]) -> Layer:
    weights = tuple(Weight(**{**weight, "shape": tuple(weight["shape"])}) for weight in entry["weights"])
    feeds = tuple((str(name), int(tensor)) for name, tensor in entry["feeds"])
    graph = _pair(entry["graph"])
    if graph is None:
        raise ModelError(f"layer {entry['name']!r} has no graph")
    return Layer(**{**entry, "weights": weights, "feeds": feeds, "graph": graph})


def _pair(value: Any) -> tuple[int, int] | None:
    return None if value is None else (int(value[0]), int(value[1]))

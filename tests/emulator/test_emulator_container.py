"""The model file: what was encoded is decoded, and whatever is damaged is a ModelError."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdq_models import branches, chain

from pytest_rknpu.emulator import pack
from pytest_rknpu.emulator.container import MAGIC, decode, encode
from pytest_rknpu.emulator.platform import release_of
from pytest_rknpu.errors import ConfigurationError, ModelError

DATA = pack(branches(), "rk3588", custom_string="for the test")


def test_round_trip() -> None:
    model = decode(DATA)
    assert encode(model) == DATA
    assert model.target_platform == "rk3588"
    assert model.compiler == "emulated 2.3.2"
    assert model.custom_string == "for the test"
    assert DATA[:4] == MAGIC == b"RKEM"


def test_the_version_that_is_asked_for_is_stated() -> None:
    model = decode(pack(chain(), "rk3588", "2.1.0"))
    assert (model.compiler, model.needs_runtime) == ("emulated 2.1.0", "2.1.0")


def test_weights_of_layers_lie_in_the_weight_memory_without_overlap() -> None:
    model = decode(DATA)
    weights = {weight.name: weight for layer in model.layers for weight in layer.weights}
    taken: set[int] = set()
    for weight in weights.values():
        span = set(range(weight.offset, weight.offset + weight.size))
        assert not span & taken
        assert max(span) < model.weight_size
        taken |= span


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(position: int, change: int) -> None:
    damaged = bytearray(DATA)
    damaged[position] ^= change
    with pytest.raises(ModelError):
        decode(bytes(damaged))


@given(st.integers(0, len(DATA) - 1))
def test_a_missing_end_is_found(length: int) -> None:
    with pytest.raises(ModelError):
        decode(DATA[:length])


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_no_model(data: bytes) -> None:
    for candidate in (data, MAGIC + data):
        with pytest.raises(ModelError):
            decode(candidate)


@pytest.mark.parametrize("header", [b"", b"[]", b"{}", b"null", b'{"tensors": 3}', b"\xff"])
def test_a_header_that_is_none_is_found_although_all_sums_fit(header: bytes) -> None:
    digest = hashlib.sha256(header).digest()
    prefix = struct.pack("<4sIQI32s", MAGIC, 1, 52 + len(header), len(header), digest)
    with pytest.raises(ModelError, match="header"):
        decode(prefix + header)


def test_a_newer_format_is_named() -> None:
    with pytest.raises(ModelError, match="format version 9"):
        decode(DATA[:4] + struct.pack("<I", 9) + DATA[8:])


def test_a_tolerated_truncation_keeps_what_is_there() -> None:
    whole, cut = decode(DATA), decode(DATA[:-100], tolerate_truncation=True)
    assert cut.layers == whole.layers
    assert cut.blob[:-100] == whole.blob[:-100]
    with pytest.raises(ModelError):
        decode(DATA[:60], tolerate_truncation=True)


def test_the_header_is_json_for_people_to_read() -> None:
    length = struct.unpack_from("<I", DATA, 16)[0]
    header = json.loads(DATA[52 : 52 + length])
    assert header["layers"][0]["operators"] == "Conv+Relu"


@pytest.mark.parametrize(
    ("text", "release"),
    [("2.3.2", (2, 3, 2)), ("2.0.0b0", (2, 0, 0)), ("1.6.0 (9a7b5d24c)", (1, 6, 0)), ("3", (3,))],
)
def test_releases(text: str, release: tuple[int, ...]) -> None:
    assert release_of(text) == release


def test_what_is_no_release() -> None:
    with pytest.raises(ConfigurationError, match="newest"):
        release_of("newest")

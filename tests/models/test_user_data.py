"""The data files of a [[model]]: what fits its inputs, and how the rest is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.models.user_data import InputForm, Samples, read_listed, read_samples

WHERE = '[[model]] "mine", key "calibration"'
PICTURE = InputForm("input", (1, 3, 4, 5))
NHWC = InputForm("input", (1, 3, 4, 5), data_nhwc=True)
VECTOR = InputForm("vector", (1, 7))
ROWS = np.arange(14, dtype=np.float32).reshape(2, 7)


def written(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def test_one_input_under_any_name(tmp_path: Path) -> None:
    data = np.arange(120, dtype=np.uint8).reshape(2, 3, 4, 5)
    samples = read_samples(WHERE, written(tmp_path, whatever=data), [PICTURE])
    assert samples.inputs[0].dtype == np.float32
    assert np.array_equal(samples.inputs[0], data)
    assert (len(samples), samples.labels) == (2, None)


def test_nhwc_is_turned_to_the_graphs_layout(tmp_path: Path) -> None:
    data = np.arange(120, dtype=np.float32).reshape(2, 4, 5, 3)
    samples = read_samples(WHERE, written(tmp_path, x=data), [NHWC])
    assert np.array_equal(samples.inputs[0], data.transpose(0, 3, 1, 2))
    turned = InputForm("input", (1, 4, 5, 3), data_nhwc=False, graph_nhwc=True)
    again = read_samples(WHERE, written(tmp_path, x=data.transpose(0, 3, 1, 2)), [turned])
    assert np.array_equal(again.inputs[0], data)


def test_several_inputs_go_by_name(tmp_path: Path) -> None:
    file = written(tmp_path, vector=ROWS, input=np.zeros((2, 3, 4, 5)), labels=np.array([1, 0]))
    samples = read_samples(WHERE, file, [PICTURE, VECTOR], labelled=True)
    assert [array.shape for array in samples.inputs] == [(2, 3, 4, 5), (2, 7)]
    assert samples.labels is not None
    assert samples.labels.tolist() == [1, 0]
    assert len(samples.first(1)) == 1


def test_npy_is_one_input(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    assert len(read_samples(WHERE, tmp_path / "x.npy", [VECTOR])) == 2


@pytest.mark.parametrize(
    ("arrays", "forms", "labelled", "words"),
    [
        ({"x": np.zeros((2, 4, 5, 3))}, [PICTURE], False, "takes (N, 3, 4, 5)"),
        ({"x": np.zeros((2, 3, 4, 5))}, [NHWC], False, "in the graph's layout"),
        ({"x": np.zeros((0, 7))}, [VECTOR], False, "has 0 samples"),
        ({"x": np.array(["a"])}, [VECTOR], False, "holds <U1, not numbers"),
        ({"x": np.zeros((2, 4, 5, 3))}, [PICTURE], False, 'say layout = "nhwc" in key "inputs"'),
        ({"x": np.zeros((2, 1, 4, 5))}, [PICTURE], False, 'key "inputs" says shape and layout'),  # grey
        ({"x": np.full((1, 7), np.nan)}, [VECTOR], False, "has 7 elements that are not finite"),
        ({"x": np.full((1, 7), 1e300)}, [VECTOR], False, "not finite as float32"),
        ({"x": ROWS.astype(np.int64) + 2**24 + 1}, [VECTOR], False, "beyond 2^24"),
        ({"x": np.full((2, 7), 3.5)}, [VECTOR], False, "all elements are 3.5: nothing can be quantised"),
        ({"a": np.zeros((1, 7)), "b": np.zeros((1, 7))}, [VECTOR], False, "holds 'a', 'b', the model has"),
        (
            {"vector": np.zeros((1, 7))},
            [PICTURE, VECTOR],
            False,
            "the model has the inputs 'input', 'vector'",
        ),
        (
            {"vector": np.zeros((1, 7)), "input": np.zeros((2, 3, 4, 5))},
            [PICTURE, VECTOR],
            False,
            "has 1 and 2 samples",
        ),
        ({"x": np.zeros((2, 7))}, [VECTOR], True, "has no array 'labels'"),
        ({"x": ROWS, "labels": np.zeros(2)}, [VECTOR], True, "it has to be whole numbers"),
        ({"x": ROWS, "labels": np.zeros(3, int)}, [VECTOR], True, "of shape (2,)"),
        (
            {"x": ROWS, "labels": np.array([-1, 3])},
            [VECTOR],
            True,
            "from -1 to 3; classes are counted from 0",
        ),
        ({"x": ROWS, "labels": np.array([1, 2**63], np.uint64)}, [VECTOR], True, "to 9223372036854775808"),
    ],
)
def test_what_does_not_fit(
    tmp_path: Path, arrays: dict[str, Any], forms: list[InputForm], labelled: bool, words: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_samples(WHERE, written(tmp_path, **arrays), forms, labelled=labelled)
    assert str(raised.value).startswith(f"{WHERE}: {tmp_path / 'data.npz'}")
    assert words in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"\x93NUMPY\x01\x00", b"words"])
def test_files_that_are_no_arrays(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"cannot be read as arrays"):
        read_samples(WHERE, tmp_path / "data.npz", [VECTOR])


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ConfigurationError, match=r"cannot be read as arrays"):
        read_samples(WHERE, tmp_path / "evil.npy", [VECTOR])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_words(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.npz"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="mine"):
        read_samples(WHERE, file, [VECTOR])


@given(st.data())
def test_a_damaged_archive_is_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Compressed, so that what zlib says of it is met too."""
    file = tmp_path_factory.getbasetemp() / "damaged.npz"
    np.savez_compressed(file, x=ROWS)
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]) or b"x")
    with contextlib.suppress(ConfigurationError):
        read_samples(WHERE, file, [VECTOR])


@pytest.mark.parametrize("leading", [True, False], ids=["with-leading-1", "without"])
def test_lists_of_arrays(tmp_path: Path, leading: bool) -> None:
    sample = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    np.save(tmp_path / "a.npy", sample[None] if leading else sample)
    np.save(tmp_path / "b.npy", np.zeros((1, 7)))
    samples = read_listed(WHERE, [[tmp_path / "a.npy", tmp_path / "b.npy"]] * 2, [PICTURE, VECTOR])
    assert isinstance(samples, Samples)
    assert np.array_equal(samples.inputs[0], np.stack([sample] * 2))
    assert samples.inputs[1].shape == (2, 7)


def test_lists_with_pictures_hold_no_arrays(tmp_path: Path) -> None:
    assert read_listed(WHERE, [[tmp_path / "a.jpg"]], [PICTURE]) is None


def test_a_list_of_archives_with_several_arrays_is_refused(tmp_path: Path) -> None:
    written(tmp_path, a=ROWS, b=ROWS).rename(tmp_path / "two.npy")
    with pytest.raises(
        ConfigurationError, match=r"two\.npy holds 'a', 'b'; a list names a file for each array"
    ):
        read_listed(WHERE, [[tmp_path / "two.npy"]], [InputForm(None, None)])


def test_a_constant_list_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "zero.npy", np.zeros((1, 7)))
    with pytest.raises(ConfigurationError, match="all elements are 0"):
        read_listed(WHERE, [[tmp_path / "zero.npy"]] * 3, [VECTOR])


def test_lists_of_unequal_arrays(tmp_path: Path) -> None:
    for name, size in (("a", 3), ("b", 4)):
        np.save(tmp_path / f"{name}.npy", np.zeros((1, size)))
    with pytest.raises(ConfigurationError, match="several shapes"):
        read_listed(WHERE, [[tmp_path / "a.npy"], [tmp_path / "b.npy"]], [InputForm(None, None)])

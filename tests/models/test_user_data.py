"""The data files of a [[model]]: what fits its inputs, and how the rest is refused."""

from __future__ import annotations

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
    file = written(tmp_path, vector=np.ones((2, 7)), input=np.zeros((2, 3, 4, 5)), labels=np.array([1, 0]))
    samples = read_samples(WHERE, file, [PICTURE, VECTOR], labelled=True)
    assert [array.shape for array in samples.inputs] == [(2, 3, 4, 5), (2, 7)]
    assert samples.labels is not None
    assert samples.labels.tolist() == [1, 0]
    assert len(samples.first(1)) == 1


def test_npy_is_one_input(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 7)))
    assert len(read_samples(WHERE, tmp_path / "x.npy", [VECTOR])) == 3


@pytest.mark.parametrize(
    ("arrays", "forms", "labelled", "words"),
    [
        ({"x": np.zeros((2, 4, 5, 3))}, [PICTURE], False, "takes (N, 3, 4, 5)"),
        ({"x": np.zeros((2, 3, 4, 5))}, [NHWC], False, "in the graph's layout"),
        ({"x": np.zeros((0, 7))}, [VECTOR], False, "has 0 samples"),
        ({"x": np.array(["a"])}, [VECTOR], False, "holds <U1, not numbers"),
        ({"x": np.full((1, 7), np.nan)}, [VECTOR], False, "not finite"),
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
        ({"x": np.zeros((2, 7)), "labels": np.zeros(2)}, [VECTOR], True, "it has to be whole numbers"),
        ({"x": np.zeros((2, 7)), "labels": np.zeros(3, int)}, [VECTOR], True, "of shape (2,)"),
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


def test_lists_of_unequal_arrays(tmp_path: Path) -> None:
    for name, size in (("a", 3), ("b", 4)):
        np.save(tmp_path / f"{name}.npy", np.zeros((1, size)))
    with pytest.raises(ConfigurationError, match="several shapes"):
        read_listed(WHERE, [[tmp_path / "a.npy"], [tmp_path / "b.npy"]], [InputForm(None, None)])

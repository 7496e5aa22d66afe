"""The SoC table: what every row must hold whatever the sources say, and the values that suites lean on."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.socs import SOCS, find_soc

MINI = {"rv1103", "rv1103b", "rv1106", "rv1106b"}


def test_covers_the_rknpu2_family_with_linux() -> None:
    assert set(SOCS) == {"rk3588", "rk3576", "rk3568", "rk3566", "rk3562", "rv1126b"} | MINI


@pytest.mark.parametrize("soc", SOCS.values(), ids=tuple(SOCS))
def test_rows_do_not_contradict_themselves(soc) -> None:
    assert SOCS[soc.name] is soc
    assert bool(soc.core_masks) == ("rknn_set_core_mask" not in soc.unsupported_functions)
    assert bool(soc.core_masks) == (soc.npu_cores > 1)
    single_cores = {name for name in soc.core_masks if name.removeprefix("RKNN_NPU_CORE_").isdigit()}
    assert len(single_cores) == (soc.npu_cores if soc.core_masks else 0)
    assert (soc.runtime == "librknnmrt") == (soc.name in MINI) == (soc.context_bits == 32)
    assert soc.null_context_sync == (soc.name not in MINI)
    assert all(name.startswith("rknn_") for name in soc.unsupported_functions)
    assert all(atom > 0 and atom & (atom - 1) == 0 for atom in soc.feature_atom.values())
    hash(soc)


def test_core_masks_end_with_the_last_core() -> None:
    assert "RKNN_NPU_CORE_0_1_2" in SOCS["rk3588"].core_masks
    assert not {"RKNN_NPU_CORE_2", "RKNN_NPU_CORE_0_1_2"} & set(SOCS["rk3576"].core_masks)


def test_only_two_socs_are_sparse() -> None:
    assert {soc.name for soc in SOCS.values() if soc.sparse} == {"rk3576", "rv1126b"}


def test_feature_atoms_by_chip() -> None:
    assert {name: SOCS[name].feature_atom.get("int8") for name in SOCS} == {
        "rk3588": 16,
        "rk3576": 16,
        "rk3568": 8,
        "rk3566": 8,
        "rk3562": 16,
        "rv1126b": 16,
        "rv1103": 16,
        "rv1106": 16,
        "rv1103b": None,  # no source
        "rv1106b": None,
    }


@pytest.mark.parametrize("function", ["rknn_inputs_set", "rknn_dup_context", "rknn_matmul_run"])
def test_what_the_mini_runtime_lacks(function: str) -> None:
    assert {soc.name for soc in SOCS.values() if function in soc.unsupported_functions} == MINI


@pytest.mark.parametrize("name", ["rk3588", "RK3588", " rk3588s ", "RK3588S"])
def test_find_by_name_alias_and_case(name: str) -> None:
    assert find_soc(name).name == "rk3588"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rk358", ['did you mean "rk3588"']),
        ("rk1126b", ['did you mean "rv1126b"']),  # the guide's own slip
        ("pentium", ["known: rk3562"]),
        ("rk3399pro", ["RKNPU1", "RKNN-Toolkit (1.x)"]),
        ("RV1126", ["RKNPU1"]),
        ("rk2118", ["RTOS"]),
        ("", ["known:"]),
        ("x" * 10_000, ["..."]),
    ],
)
def test_find_refuses_with_a_hint(name: str, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_soc(name)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("entries", "matching"),
    [
        (["rockchip,rk3588-orangepi-5-plus", "rockchip,rk3588"], "rk3588"),
        (["xunlong,orangepi-5", "rockchip,rk3588s"], "rk3588"),
        (["rockchip,rv1103g-38x38-ipc-v10", "rockchip,rv1103"], "rv1103"),
        (["rockchip,rv1106b"], "rv1106b"),
        (["rockchip,rk3399"], None),
        ([""], None),
    ],
)
def test_device_tree_entries_are_compared_whole(entries: list[str], matching: str | None) -> None:
    assert {soc.name for soc in SOCS.values() if soc.matches_device_tree(entries)} == (
        {matching} if matching else set()
    )

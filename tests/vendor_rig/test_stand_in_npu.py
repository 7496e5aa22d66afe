"""The stand-in NPU lets data flow: every input byte counts, and nothing else does."""

from __future__ import annotations

import pytest

from tests.vendor_rig.checks import (
    check_bounds,
    check_cores_agree,
    check_every_byte_counts,
    check_key,
    check_outputs_are_written,
    check_syncs_matter,
    check_ways_agree,
)
from tests.vendor_rig.conftest import MakeThinPath

SOCS = pytest.mark.parametrize("soc", ["rk3588", "rk3566"])


@SOCS
@pytest.mark.parametrize("model", ["probe_pointwise", "probe_chain", "probe_wide"])
def test_every_input_byte_counts_and_nothing_else(thin_path: MakeThinPath, soc: str, model: str) -> None:
    check_every_byte_counts(thin_path, soc, model)


@SOCS
@pytest.mark.parametrize("model", ["probe_pointwise", "probe_chain", "probe_wide"])
def test_zero_copy_equals_the_copying_api(thin_path: MakeThinPath, soc: str, model: str) -> None:
    check_ways_agree(thin_path, soc, model)


def test_cores_do_not_matter(thin_path: MakeThinPath) -> None:
    check_cores_agree(thin_path)


@SOCS
def test_outputs_are_written_from_their_first_byte_to_their_last(thin_path: MakeThinPath, soc: str) -> None:
    check_outputs_are_written(thin_path, soc)


@SOCS
def test_syncs_matter(thin_path: MakeThinPath, soc: str) -> None:
    check_syncs_matter(thin_path, soc)


@SOCS
def test_an_internal_memory_that_is_too_small_fails_the_run(thin_path: MakeThinPath, soc: str) -> None:
    check_bounds(thin_path, soc)


def test_another_key_changes_every_output_and_nothing_else(thin_path: MakeThinPath) -> None:
    check_key(thin_path)

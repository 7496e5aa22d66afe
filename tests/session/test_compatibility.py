"""VER-03: what the table says of combinations, and that it is said before a board is asked."""

from __future__ import annotations

import pytest

from pytest_rknpu import prebuilt
from pytest_rknpu.errors import ConformanceFailure, ModelError
from pytest_rknpu.session import Npu
from pytest_rknpu.session.compatibility import (
    FULL,
    MINI,
    Combination,
    combination_of,
    findings,
    header_of,
    release_in,
    require_known_to_work,
)
from pytest_rknpu.toolchain import RknnHeader

MODEL = RknnHeader(6, ("rk3588",), "2.3.2")
MINI_MODEL = RknnHeader(0x1004, ("rv1106",), "2.3.2")


def full(runtime: str, driver: str, model: RknnHeader | None = MODEL, soc: str = "rk3588") -> Combination:
    return Combination(soc, FULL, release_in(runtime), release_in(driver), model)


@pytest.mark.parametrize(
    ("combination", "failing", "doubtful"),
    [
        (full("2.3.2", "0.9.8"), [], []),
        (full("1.5.2", "0.9.8", RknnHeader(6, ("rk3588",), "1.5.2")), [], []),
        (full("1.5.0", "0.9.8"), ["Invalid RKNN model version 6"], ["update the runtime"]),
        (full("1.4.0", "0.8.2", RknnHeader(4, ("rk3588",), "1.4.0")), [], []),
        (full("2.3.2", "0.6.4"), ["older than 0.7.0"], []),
        (full("2.3.2", "0.9.2"), [], ["cores 1 and 2"]),
        (full("2.3.2", "0.9.6"), [], []),
        (full("2.3.2", "0.9.2", soc="rk3576"), [], []),
        (
            full("2.3.2", "0.9.8", RknnHeader(6, ("rk3588",), "2.5.0")),
            [],
            ["compiled by RKNN-Toolkit2 2.5.0"],
        ),
        (Combination("rv1106", MINI, (2, 3, 2), (0, 9, 2), MINI_MODEL), ["mini runtime"], []),
        (Combination("rv1106", MINI, (1, 6, 0), (0, 9, 2), None), [], []),
        (Combination("rk3588", FULL, None, None, MODEL), [], []),
        (Combination("rk3588", FULL, None, None, None), [], []),
    ],
)
def test_the_table(combination: Combination, failing: list[str], doubtful: list[str]) -> None:
    found = findings(combination)
    assert len(found.failing) == len(failing)
    assert len(found.doubtful) == len(doubtful)
    assert all(words in text for words, text in zip(failing, found.failing, strict=True))
    assert all(words in text for words, text in zip(doubtful, found.doubtful, strict=True))


def test_words_name_the_combination_and_the_source() -> None:
    (text,) = findings(full("1.4.0", "0.9.8")).failing
    assert (
        "(here: rk3588, librknnrt 1.4.0, driver 0.9.8, model of format 6 by toolkit 2.3.2; known from" in text
    )
    assert "issues 254 and 281" in text


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("1.6.0 (9a7b5d24c@2023-12-13T17:31:11)", (1, 6, 0)),
        ("librknnrt version: 1.5.3b13", (1, 5, 3)),
        ("v0.9.8 20240828", (0, 9, 8)),
        ("emulated 2.3.2", (2, 3, 2)),
        ("absent", None),
        ("absent (no file below 1.2.3.4)", None),
        ("probe blocked (model of 2.5.0)", None),
        ("", None),
    ],
)
def test_versions_are_read_where_they_are_values(version: str, release: tuple[int, ...] | None) -> None:
    assert release_in(version) == release


def test_the_library_file_speaks_where_the_runtime_could_not() -> None:
    versions = {
        "runtime": "probe blocked (rknn_init returned -6)",
        "runtime_library": "librknnrt version: 1.4.0 (a10f100eb@2022-09-09T09:07:14)",
        "driver": "probe blocked (needs root)",
        "driver_api": "0.9.8",
    }
    found = combination_of("rk3588", FULL, versions, MODEL)
    assert (found.runtime, found.driver) == ((1, 4, 0), (0, 9, 8))
    assert len(findings(found).failing) == 1


def test_a_board_is_not_asked_for_what_cannot_work(npu: Npu, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's versions say 1.4.0: a model of format 6 is refused by name, nothing is sent."""
    content = prebuilt.load("probe_chain", "rk3588").content
    monkeypatch.setitem(npu.session.versions, "runtime", "1.4.0 (a10f100eb)")
    monkeypatch.setattr(npu.session, "store_model", lambda data: pytest.fail("the board was asked"))
    with pytest.raises(ConformanceFailure, match=r"needs librknnrt 1\.5\.2 or newer"):
        npu.load("probe_chain", content)


def test_other_files_are_left_to_the_board() -> None:
    assert header_of(b"RKEM....") is None
    require_known_to_work("rk3588", FULL, {"runtime": "1.4.0"}, b"RKEM....")
    with pytest.raises(ModelError):
        require_known_to_work("rk3588", FULL, {"runtime": "1.4.0"}, b"RKNN")

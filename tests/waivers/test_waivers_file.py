"""waivers.toml: what it may say, and that nothing wide or endless gets in."""

from __future__ import annotations

import contextlib
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ConfigurationError, RknpuError
from pytest_rknpu.waivers import Waiver, load_waivers
from pytest_rknpu.waivers.version_range import holds, parse_range, version_in

TODAY = datetime.now(timezone.utc).date()
SOON = TODAY + timedelta(days=30)

GOOD = f"""
[[waiver]]
requirement = "SYNC-07"
board = "orange-*"
soc = "RK3588S"
versions = {{ driver = "<0.9.8" }}
test = "suites/sync/*"
message = "neighbour .* lost"
reason = "fixed in driver 0.9.8"
link = "https://tracker.example/71"
expires = {SOON}
"""


def load(folder: Path, text: str) -> tuple[Waiver, ...]:
    path = folder / "waivers.toml"
    path.write_text(text, encoding="utf-8")
    return load_waivers(path).waivers


def test_a_whole_table_is_read(tmp_path: Path) -> None:
    (waiver,) = load(tmp_path, GOOD)
    assert (waiver.requirement, waiver.soc, waiver.expires) == ("SYNC-07", "rk3588", SOON)
    assert waiver.scope == "board orange-*, SoC rk3588, driver <0.9.8, suites/sync/*"


def test_no_table_is_no_waiver(tmp_path: Path) -> None:
    assert load(tmp_path, "# nothing is broken\n") == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"SYNC-07"', '"SYNC-7"', ['key "requirement"', "did you mean SYNC-07"]),
        ('"SYNC-07"', '"SYNC-*"', ['key "requirement"', "SYNC-*"]),
        ('"RK3588S"', '"rk3589"', ['key "soc"', "rk3589"]),
        ('"orange-*"', '"**?"', ['key "board"', "all there is"]),
        ('"suites/sync/*"', '"*"', ['key "test"', "all there is"]),
        ('"neighbour .* lost"', '".*"', ['key "message"', "any message"]),
        ('"neighbour .* lost"', '"lost|"', ['key "message"', "any message"]),
        ('"neighbour .* lost"', '"("', ['key "message"', "no regular expression"]),
        ('"fixed in driver 0.9.8"', '"  "', ['key "reason"', "is empty"]),
        ('driver = "<0.9.8"', 'drivr = "<0.9.8"', ['key "versions"', 'did you mean "driver"']),
        ('driver = "<0.9.8"', 'driver = "up to 0.9.8"', ['key "versions"', "no range"]),
        ('driver = "<0.9.8"', 'driver = ""', ['key "versions"', "every version"]),
        (str(SOON), str(TODAY + timedelta(days=400)), ['key "expires"', "too far ahead"]),
        (str(SOON), '"soon"', ['key "expires"']),
        ("[[waiver]]", "[waiver]", ["in two brackets"]),
        ("[[waiver]]", "[[waver]]", ["waver", 'did you mean "waiver"']),
        ("link =", "url =", ['unknown key "url"']),
        ("reason =", "why =", ['key "reason": missing']),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in GOOD
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, GOOD.replace(old, new))
    for word in ["waivers.toml", *words]:
        assert word in str(refused.value)


def test_a_waiver_of_all_boards_is_refused(tmp_path: Path) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(("board", "soc", "versions"))]
    with pytest.raises(ConfigurationError, match="covers every board"):
        load(tmp_path, "\n".join(lines))


def test_an_expired_waiver_is_still_read(tmp_path: Path) -> None:
    (waiver,) = load(tmp_path, GOOD.replace(str(SOON), "2020-01-31"))
    assert waiver.expired(date(2020, 2, 1))
    assert not waiver.expired(date(2020, 1, 31))


@given(st.text() | st.from_regex(r'\[\[waiver\]\]\n([a-z]+ = ("[^"\n]*"|[0-9-]+)\n)*', fullmatch=True))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "waivers.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(RknpuError):
        load_waivers(path)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.3.2 (429f97ae6b@2025-04-09T09:09:27)", "2.3.2"),
        ("emulated 0.9.8", "0.9.8"),
        ("v0.9.7", "0.9.7"),
        ("librknnrt 1.5.2 (c6b7b351a@2023-08-23T15:28:22)", "1.5.2"),
        ("5.10.160-rockchip-rk3588", "5.10.160"),
        ("absent: no debugfs 4.1.2", None),
        ("probe blocked: 1.2.3 denied", None),
        ("fake 1", None),
        ("", None),
    ],
)
def test_versions_are_found_in_what_boards_say(text: str, version: str | None) -> None:
    found = version_in(text)
    assert (str(found) if found else None) == version


def test_an_unknown_version_lies_in_no_range() -> None:
    assert holds("<0.9.8", "emulated 0.9.7")
    assert not holds("<0.9.8", "0.9.8")
    assert not holds("<99", "absent: not a Rockchip kernel")
    assert not holds(">=0.0.1", "")


@given(st.text())
def test_any_word_is_a_version_or_none(text: str) -> None:
    version_in(text)
    with contextlib.suppress(ValueError):
        parse_range(text)

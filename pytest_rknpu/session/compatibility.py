"""VER-03: combinations of model, runtime and driver that are known not to work, as a table with its sources.

What is known to fail is named before a board is asked to do it; what is merely doubtful is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_rknpu.errors import ConformanceFailure

if TYPE_CHECKING:
    from pytest_rknpu.toolchain import RknnHeader

Release = tuple[int, ...]

FULL, MINI = "librknnrt", "librknnmrt"
#: How a recorded version begins that is no value.
_NO_VALUE = ("absent", "probe blocked")


@dataclass(frozen=True)
class Combination:
    """What is known of a board and the model it shall load; None: unknown, and then nothing is said of it."""

    soc: str
    runtime_name: str
    runtime: Release | None
    driver: Release | None
    model: RknnHeader | None


@dataclass(frozen=True)
class Rule:
    """Applies where every condition that is given holds. ``below`` are excluded upper limits.

    ``fails``: known to fail; else doubtful.
    """

    words: str
    source: str
    fails: bool
    runtime_name: str | None = None
    socs: frozenset[str] | None = None
    model_format: int | None = None
    runtime_from: Release | None = None
    runtime_below: Release | None = None
    driver_from: Release | None = None
    driver_below: Release | None = None


RULES = (
    Rule(
        "a model of format 6 needs librknnrt 1.5.2 or newer: rknn_init refuses it with 'Invalid RKNN model "
        "version 6'. Update librknnrt.so",
        "rknn-toolkit2 issues 254 and 281 (airockchip), 316 (rockchip-linux): 1.3.0, 1.4.0 and 1.5.0 refuse "
        "it; 1.5.2 loads it",
        fails=True,
        runtime_name=FULL,
        model_format=6,
        runtime_below=(1, 5, 2),
    ),
    Rule(
        "librknnrt refuses an rknpu driver older than 0.7.0. Update the kernel's rknpu driver",
        "librknnrt 1.5.2 on a stand-in driver",
        fails=True,
        runtime_name=FULL,
        driver_below=(0, 7, 0),
    ),
    Rule(
        "the mini runtime 2.3.2 needs a newer rknpu driver than 0.9.2 ('Mismatch driver version'). Update "
        "the kernel's rknpu driver, or use the runtime 1.6.0 that came with it",
        "luckfox-pico issue 328",
        fails=True,
        runtime_name=MINI,
        runtime_from=(2, 3, 2),
        driver_below=(0, 9, 3),
    ),
    Rule(
        "with rknpu driver 0.9.2 and 0.9.3 the cores 1 and 2 have failed ('failed to submit!', 'Disabling "
        "IRQ'); 0.9.6 mended it",
        "radxa kernel issue 312, rknn-toolkit2 issues 38 (airockchip) and 320 (rockchip-linux)",
        fails=False,
        socs=frozenset({"rk3588"}),
        driver_from=(0, 9, 2),
        driver_below=(0, 9, 6),
    ),
)


@dataclass(frozen=True)
class Findings:
    """``failing`` combinations are known not to work, ``doubtful`` ones are worth a remark."""

    failing: tuple[str, ...]
    doubtful: tuple[str, ...]


def findings(combination: Combination) -> Findings:
    """All that the table says of a combination, in words."""
    matching = [rule for rule in RULES if _applies(rule, combination)]
    failing = tuple(_words(rule, combination) for rule in matching if rule.fails)
    doubtful = [_words(rule, combination) for rule in matching if not rule.fails]
    return Findings(failing, (*doubtful, *_newer_model(combination)))


def header_of(content: bytes) -> RknnHeader | None:
    """The header of a model file; None for what is no .rknn file (an emulated board's container, damaged)."""
    from pytest_rknpu.toolchain.rknn_file import MAGIC, read_header  # which takes onnx along

    return read_header(content) if content[: len(MAGIC)] == MAGIC else None


def require_known_to_work(soc: str, runtime_name: str, versions: Mapping[str, str], content: bytes) -> None:
    """Names what cannot work before a board is asked to load the model ``content``.

    ConformanceFailure: the combination is known to fail. ModelError: a damaged .rknn file.
    """
    header = header_of(content)
    if header is None:
        return
    failing = findings(combination_of(soc, runtime_name, versions, header)).failing
    if failing:
        raise ConformanceFailure("; ".join(failing))


def combination_of(
    soc: str, runtime_name: str, versions: Mapping[str, str], model: RknnHeader | None
) -> Combination:
    """From the versions that a session has recorded (``BoardSession.versions``)."""
    runtime = release_in(versions.get("runtime", "")) or release_in(versions.get("runtime_library", ""))
    driver = release_in(versions.get("driver", "")) or release_in(versions.get("driver_api", ""))
    return Combination(soc, runtime_name, runtime, driver, model)


def release_in(version: str) -> Release | None:
    """The numbers of a recorded version, "2.3.2 (429f97ae6b@...)" or "v0.9.8"; None where it is no value."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", version) if not version.startswith(_NO_VALUE) else None
    return tuple(int(part) for part in found.groups()) if found else None


def _applies(rule: Rule, combination: Combination) -> bool:
    model = combination.model
    return (
        rule.runtime_name in (None, combination.runtime_name)
        and (rule.socs is None or combination.soc in rule.socs)
        and (rule.model_format is None or (model is not None and model.format_version == rule.model_format))
        and _within(combination.runtime, rule.runtime_from, rule.runtime_below)
        and _within(combination.driver, rule.driver_from, rule.driver_below)
    )


def _within(release: Release | None, lowest: Release | None, limit: Release | None) -> bool:
    if lowest is None and limit is None:
        return True
    return release is not None and (lowest or ()) <= release and (limit is None or release < limit)


def _newer_model(combination: Combination) -> list[str]:
    """A model of a newer toolkit than the runtime often runs; where it does not, this is suspect."""
    if combination.model is None or combination.runtime is None:
        return []
    toolkit = release_in(combination.model.toolkit_version)
    if toolkit is None or toolkit <= combination.runtime:
        return []
    return [
        f"the model was compiled by RKNN-Toolkit2 {combination.model.toolkit_version}, the runtime is "
        f"{_dotted(combination.runtime)}: if rknn_init fails (-6, 'Invalid RKNN model version'), update the "
        "runtime, or compile with its version of the toolkit"
    ]


def _words(rule: Rule, combination: Combination) -> str:
    parts = [f"{combination.soc}"]
    if combination.runtime is not None:
        parts.append(f"{combination.runtime_name} {_dotted(combination.runtime)}")
    if combination.driver is not None:
        parts.append(f"driver {_dotted(combination.driver)}")
    if combination.model is not None:
        model = combination.model
        parts.append(f"model of format {model.format_version} by toolkit {model.toolkit_version}")
    return f"{rule.words} (here: {', '.join(parts)}; known from {rule.source})"


def _dotted(release: Release) -> str:
    return ".".join(str(part) for part in release)

"""The versions a verdict holds for (VER-01): each a value, "absent (why)" or "probe blocked (why)"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_rknpu.errors import ConformanceFailure, ModelError, ToolkitError
from pytest_rknpu.session.artifacts import artifact_for, compiler_of
from pytest_rknpu.session.compatibility import require_known_to_work
from pytest_rknpu.session.description import version_program
from pytest_rknpu.session.runtime_log import explanation, versions_in

if TYPE_CHECKING:
    from pytest_rknpu.session.board_session import BoardSession

Facts = Mapping[str, Any]

SMALLEST_MODEL = "probe_pointwise"
"""What a board is asked to load first."""


def _bsp(value: Facts) -> str:
    name = value.get("PRETTY_NAME") or value.get("NAME") or value.get("ID")
    return str(name or "an os-release file that gives no name")


def _android(value: Facts) -> str:
    release = value.get("ro.build.version.release")
    build = value.get("ro.build.display.id") or value.get("ro.build.fingerprint")
    return " ".join(word for word in ("Android", release, f"({build})" if build else None) if word)


def _vendor(value: Facts) -> str:
    return "; ".join(
        f"{name}: {text.splitlines()[0] if text else ''}" for name, text in sorted(value.items())
    )


def _driver(value: Facts) -> str:
    return f"{value['version']}" + (f" {value['date']}" if value["date"] else "")


def _library(value: Facts) -> str:
    return str(value["text"] or f"{value['path']} holds no version string")


def _server(value: Facts) -> str:
    return _library(value) + (", running" if value["pid"] else "")


def _clock(value: Facts) -> str:
    hertz = value["hertz"]
    return f"{value['governor']}, {hertz / 1e6:g} MHz" if hertz else str(value["governor"])


def _policies(value: Mapping[str, Facts]) -> str:
    return "; ".join(f"{name} {_clock(policy)}" for name, policy in sorted(value.items()))


# name of the version -> (fact of the agent's probe, how its value is written)
_FROM_FACTS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "bsp": ("os_release", _bsp),
    "bsp_vendor": ("vendor_release", _vendor),
    "device_tree": ("device_tree_model", str),
    "kernel": ("kernel", lambda value: str(value["release"] or value["banner"])),
    "driver": ("driver_version", _driver),
    "runtime_library": ("runtime_library", _library),
    "rknn_server": ("rknn_server", _server),
    "lite": ("lite_version", str),
    "npu_clock": ("npu_clock", _clock),
    "ddr_clock": ("ddr_clock", _clock),
    "cpu_clocks": ("cpu_clocks", _policies),
}

_CLOCKS = ("npu_clock", "ddr_clock", "cpu_clocks")

RECORDED = (*_FROM_FACTS, "runtime", "driver_api", "toolkit", "model_compiler", "clocks")
"""The names that ``BoardSession.versions`` has on every board with a C runtime."""


def identify(session: BoardSession) -> None:
    """Fill ``session.versions`` from the probed facts and from what the runtime says of a small model."""
    versions = known_from_facts(session.facts) | compiler_of(session.board)
    versions |= _asked_of_the_runtime(session, versions)
    session.versions = versions


def known_from_facts(facts: Facts) -> dict[str, str]:
    """The versions that the agent's probe tells, without any question to the runtime."""
    versions = {name: written(facts.get(fact), write) for name, (fact, write) in _FROM_FACTS.items()}
    if not is_value(versions["bsp"]) and "value" in facts.get("android", {}):
        versions["bsp"] = written(facts["android"], _android)
    versions["clocks"] = "; ".join(f"{name.partition('_')[0]} {versions[name]}" for name in _CLOCKS)
    return versions


def written(fact: Facts | None, write: Callable[[Any], str]) -> str:
    """One fact of the agent's probe in words."""
    if fact is None:
        return "probe blocked (the agent did not look)"
    if "value" in fact:
        return write(fact["value"])
    return f"absent ({fact['absent']})" if "absent" in fact else f"probe blocked ({fact['blocked']})"


def is_value(version: str) -> bool:
    """Whether a recorded version is one, and neither absent nor blocked."""
    return not version.startswith(("absent (", "probe blocked ("))


def _asked_of_the_runtime(session: BoardSession, known: Mapping[str, str]) -> dict[str, str]:
    """RKNN_QUERY_SDK_VERSION needs a context, and so a model that this board can load (VER-03)."""
    try:
        artifact = artifact_for(session.board, SMALLEST_MODEL)
        require_known_to_work(session.soc.name, session.soc.runtime, known, artifact)
        sdk = session.execute(version_program(session.store_model(artifact)))["values"]["sdk"]
    except (ModelError, ToolkitError, ConformanceFailure) as error:
        return _told_by_a_failure(str(error))
    return {"runtime": str(sdk["api_version"]), "driver_api": str(sdk["drv_version"])}


def _told_by_a_failure(message: str) -> dict[str, str]:
    """What the runtime logged before it gave up, and what its last words mean."""
    told = versions_in(message)
    why = explanation(message) or message.splitlines()[0]
    blocked = f"probe blocked ({why})"
    return {"runtime": told.get("runtime", blocked), "driver_api": told.get("driver", blocked)}

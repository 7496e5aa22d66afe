"""``docs/proof.md`` out of ``kills.json`` and the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_rknpu.verdict import REQUIREMENTS
from tests.proof.catalogue import ANSWERS, CATALOGUE, EMULATOR, LATENCY, TOOLCHAIN, of_layer
from tests.proof.clean import CONFIDENCE, SOCS, bound_of
from tests.proof.doctored import Kills
from tests.proof.vendor import vendor_faults

PATH = Path(__file__).resolve().parents[2] / "docs" / "proof.md"

_HEAD = """\
# Why a green run means something

A suite that no fault can turn red is worth nothing. So faults are seeded, one at a time, and the suites
run on each: this page shows which test caught which. It is made by `python -m tests.proof`; tests
recompute the part that a fault's own requirements are about, and fail where a fault survives, where a
test no longer catches what it caught, and where one turns red that nobody expects. **Nothing here ran on
silicon**; what a fault was seeded into is the kind of evidence.

`fail` counts, and so does `inconclusive` (never green): a test that says that it cannot tell is no pass.
"""

_OWN = "The tests of the requirements that must catch it"
_LAYERS: Mapping[str, str] = {
    EMULATOR: "Seeded into the software board (evidence `emulator`, rk3588). {what} ran with each; "
    "`pytest suites --rknpu-fault NAME` shows the same.",
    LATENCY: "Latency models of the software board (evidence `emulator`); the tests of the named requirement "
    "ran.",
    ANSWERS: "What the runtime of an emulated board answers, doctored by hand, given to the suites' own test "
    "functions (evidence `emulator`).",
    TOOLCHAIN: "Build logs, plans and results doctored by hand, given to the suites' own test functions "
    "(evidence `simulator`: what they read was made by RKNN-Toolkit2).",
}


_PARSERS = """\
## Bad input

What reads files and answers (boards.toml, waivers.toml, the agent's command lists, .rknn files, build logs,
version strings, results) is tried with random input in every run of the tests: no crash, no hang, no error
but ours. For a longer search: `RKNPU_TEST_EXAMPLES=20000 pytest tests/inventory tests/agent tests/toolchain
tests/waivers`, and, led by coverage, `python tests/fuzz_parsers.py rknn -max_total_time=600`.
"""


def document(kills: Mapping[str, Kills], clean: Mapping[str, int], *, all_suites: bool) -> str:
    """The page as Markdown."""
    faults = [*_fault_lines(kills, all_suites=all_suites), *_vendor_lines()]
    return "\n".join([_HEAD, *_clean_lines(clean), _PARSERS, *_requirement_lines(kills), *faults])


def _clean_lines(clean: Mapping[str, int]) -> Iterator[str]:
    runs, alarms = clean["runs"], clean["alarms"]
    yield "## False alarms\n"
    yield (
        f"{runs:,} clean runs of the fast subset (SYNC, MEM and VER on {', '.join(SOCS)}; each with a seed "
        f"of its own for cache evictions and patterns) raised {alarms} alarms. "
        + (
            f"At {CONFIDENCE:.0%} confidence that excludes more than {bound_of(runs):.2%} of runs with a "
            "false alarm on such boards.\n"
            if not alarms
            else "They are to be mended.\n"
        )
    )


def _requirement_lines(kills: Mapping[str, Kills]) -> Iterator[str]:
    """By requirement: which faults of all layers it catches."""
    yield "## By requirement\n"
    yield "| requirement | faults that turn it red |"
    yield "|---|---|"
    for id, caught in caught_by(kills).items():
        if caught:
            yield f"| {id} | {', '.join(caught)} |"
    yield (
        f"\n{', '.join(MEASURED)} measure and record, and judge nothing: no fault can turn them red, and "
        "their pass says no more than that they ran.\n"
    )


MEASURED = ("LAT-07", "LAT-10")


def caught_by(kills: Mapping[str, Kills]) -> dict[str, list[str]]:
    """Requirement -> the faults of all layers that turn it red, in Markdown."""
    found = {id: [f"`{name}`" for name, killed in kills.items() if id in killed] for id in REQUIREMENTS}
    for name, (_, killed) in vendor_faults().items():
        for id in killed:
            found[id].append(f"`{name}` (vendor runtime)")
    return found


def _fault_lines(kills: Mapping[str, Kills], *, all_suites: bool) -> Iterator[str]:
    what = "The suites of SYNC, MEM, ERR and VER, and ACC-04," if all_suites else _OWN
    yield "\n## By fault\n"
    for layer, words in _LAYERS.items():
        faults = of_layer(layer)
        if not faults:
            continue
        yield f"### {layer[0].upper()}{layer[1:]}\n"
        yield words.replace("{what}", what) + "\n"
        yield "| fault | what is broken | must be caught by | tests that turned red |"
        yield "|---|---|---|---|"
        for seeded in faults:
            tests = _tests(kills.get(seeded.name, {}))
            effort = f" (`--rknpu-effort {seeded.effort}`)" if seeded.effort != "quick" else ""
            must = ", ".join(seeded.requirements)
            yield f"| `{seeded.name}` | {seeded.description}{effort} | {must} | {tests} |"
        yield ""


def _vendor_lines() -> Iterator[str]:
    yield "### Vendor-runtime rig\n"
    yield (
        "Seeded into the stand-in driver beneath the vendor's own librknnrt (evidence `vendor-runtime`, "
        "[vendor-rig.md](vendor-rig.md)); seeded and checked by `tests/vendor_rig`. An `infra` outcome is "
        "that of a driver that never answers, or takes the process along: the board is lost, and nothing "
        "is green.\n"
    )
    yield "| fault | what is broken | must be caught by | tests that turned red |"
    yield "|---|---|---|---|"
    for name, (what, kills) in vendor_faults().items():
        yield f"| `{name}` | {what} | {', '.join(kills)} | {_tests(kills)} |"
    yield ""


def _tests(found: Kills) -> str:
    """Each test once, with the outcome where it is not fail."""
    outcomes = {test: outcome for tests in found.values() for test, outcome in tests.items()}
    words = [
        test + ("" if outcome == "fail" else f" ({outcome})") for test, outcome in sorted(outcomes.items())
    ]
    return ", ".join(words) or "none"


def is_complete(kills: Mapping[str, Kills]) -> bool:
    """Whether every fault of the catalogue was computed, and nothing else."""
    return set(kills) == set(CATALOGUE)

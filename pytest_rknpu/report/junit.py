"""One JUnit file per board, by junit-xml: what CI servers read.

The shape is that of Jenkins' xUnit schema with one addition, ``properties`` in a test case: Jenkins' JUnit
step reads them there (with ``keepProperties``) and pytest's own writer puts them there, but the schema of the
xUnit plugin has none. junit-xml writes no such properties, has attributes of its own and lets some illegal
characters through, so that what it builds is finished here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from junit_xml import TestCase, TestSuite, to_xml_report_string

from pytest_rknpu.report.properties import MAIN_VERSIONS, properties_of
from pytest_rknpu.report.results import WITHOUT_BOARD, Result, RunRecord
from pytest_rknpu.report.whole_file import write_whole
from pytest_rknpu.verdict import Outcome

FOLDER_NAME = "junit"

Again = Callable[[Result], "str | None"]
"""The command that runs a result's test again, where one does."""

_NOT_RECORDED = "not recorded"

# Everything that XML 1.0 cannot hold, not even as a reference.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# In Jenkins' schema none of these exists.
_FOREIGN_ATTRIBUTES = ("disabled", "assertions")


class _Suite(TestSuite):  # type: ignore[misc]  # junit-xml has no types
    """A suite whose test cases have properties."""

    def build_xml_doc(self, encoding: str | None = None) -> ElementTree.Element:
        element: ElementTree.Element = super().build_xml_doc(encoding)
        for attribute in _FOREIGN_ATTRIBUTES:
            element.attrib.pop(attribute, None)
        element.set("time", f"{sum(case.elapsed_sec for case in self.test_cases):.3f}")
        for case, case_element in zip(self.test_cases, element.iter("testcase"), strict=True):
            case_element.set("time", f"{case.elapsed_sec:.3f}")
            case_element.insert(0, _properties(case.properties))
        return element


def write_junit(
    folder: Path, run: RunRecord, results: Sequence[Result], again: Again = lambda result: None
) -> list[Path]:
    """Write ``folder/<board>.xml`` for each board that has results; returns the files.

    Tests that are about no board go to ``_no-board.xml``. Raises OSError as files do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in dict.fromkeys(result.board or WITHOUT_BOARD for result in results):
        own = [result for result in results if (result.board or WITHOUT_BOARD) == name]
        path = folder / f"{name}.xml"
        write_whole(path, junit_text(name, run, own, again))
        written.append(path)
    return written


def junit_text(
    name: str, run: RunRecord, results: Sequence[Result], again: Again = lambda result: None
) -> str:
    """The JUnit document of one board, called ``name``."""
    suite = _Suite(
        name=name,
        test_cases=[_case(result, again(result)) for result in results],
        hostname=legal(run.host),
        timestamp=run.started,
        properties=_suite_properties(run, results),
    )
    text: str = to_xml_report_string([suite], prettyprint=True, encoding="utf-8")
    root = ElementTree.fromstring(text.encode("utf-8"))
    root.attrib.pop("disabled", None)
    root.set("time", f"{float(root.get('time', 0)):.3f}")
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode("utf-8") + "\n"


def legal(text: str) -> str:
    """``text`` with what XML cannot hold made visible: ``#x1B`` for an escape character, as pytest does."""
    return _ILLEGAL.sub(lambda match: f"#x{ord(match[0]):02X}", text)


def _case(result: Result, again: str | None) -> Any:
    class_name, name = _address(result.nodeid)
    case = TestCase(name=legal(name), classname=legal(class_name), elapsed_sec=result.duration_s)
    case.properties = [(key, legal(value)) for key, value in properties_of(result, again)]
    message = legal(result.message) or str(result.outcome)
    first_line = message.partition("\n")[0]
    if result.outcome is Outcome.FAIL:
        case.add_failure_info(message=first_line, output=message, failure_type="fail")
    elif result.outcome.red:
        case.add_error_info(message=first_line, output=message, error_type=str(result.outcome))
    elif result.outcome is not Outcome.PASS:
        case.add_skipped_info(message=message)
    case.stdout = legal(_measured(result)) or None
    return case


def _address(nodeid: str) -> tuple[str, str]:
    """Class name and name of a node id, in pytest's own manner: ``suites.sync.test_x``, ``test_y[board]``."""
    path, _, rest = nodeid.partition("::")
    names, bracket, parameters = rest.partition("[")
    *classes, name = names.split("::")
    return ".".join([*path.removesuffix(".py").split("/"), *classes]), f"{name}{bracket}{parameters}"


def _measured(result: Result) -> str:
    figures = [f"{m.name}: {m.value} {m.unit}".rstrip() for m in result.measurements]
    return "\n".join([*figures, *result.notes])


def _suite_properties(run: RunRecord, results: Sequence[Result]) -> dict[str, str]:
    last = results[-1]
    versions = _versions_of(results)
    properties = {
        "board": last.board or "",
        "SoC": last.soc or "",
        "evidence": last.evidence or "",
        **{title: versions.get(key, _NOT_RECORDED) for title, key in MAIN_VERSIONS.items()},
        **{key: value for key, value in versions.items() if key not in MAIN_VERSIONS.values()},
        "run": run.run_id,
        "seed": str(run.seed),
        "plugin": run.plugin,
    }
    return {key: legal(value) for key, value in properties.items()}


def _versions_of(results: Sequence[Result]) -> dict[str, str]:
    """Those that were recorded last; where equal boards ran the tests, all that differ among them."""
    boards = {result.ran_on: result.versions for result in results if result.versions}
    versions = dict(list(boards.values())[-1]) if boards else {}
    for key in versions:
        found = {name: own[key] for name, own in boards.items() if key in own}
        if key != "clocks" and len(set(found.values())) > 1:
            versions[key] = "; ".join(f"{name}: {value}" for name, value in found.items())
    return versions


def _properties(pairs: Sequence[tuple[str, str]]) -> ElementTree.Element:
    element = ElementTree.Element("properties")
    for name, value in pairs:
        ElementTree.SubElement(element, "property", {"name": name, "value": value})
    return element

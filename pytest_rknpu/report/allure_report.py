"""Our part of allure-pytest's results, where they are asked for (``--alluredir``).

Under xdist they are written by the workers, so this runs where the test did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_rknpu.report.attachments import attachments_of

LISTENER = "allure_listener"
"""The name of allure-pytest's plugin while it writes."""

# Custom labels: what allure's reports filter and group by.
_LABELS = ("board", "soc", "evidence", "outcome")
_REQUIREMENT = "requirement"  # one label for each
# Said of the test, yet no part of what it is: another version or seed is the same test in allure's history.
_PARAMETERS = (*_LABELS, _REQUIREMENT, "versions", "seed", "again", "ran_on", "original_outcome", "waiver")

_STATUS: Mapping[str, str] = {"pass": "passed", "fail": "failed", "skip": "skipped", "waived": "skipped"}
_OTHERS = "broken"  # allure's word for all that says nothing of what was tested


def tell_allure(config: pytest.Config, report: Any) -> None:
    """After the last phase of a test: status, properties and attachments, before allure writes them down.

    Of several attempts allure keeps one result: the last one's status, and the attachments of all.
    """
    import allure
    from allure_commons.model2 import StatusDetails

    listener: Any = config.pluginmanager.get_plugin(LISTENER)
    test = listener.allure_logger.get_test(None)
    if test is None:
        return
    result, properties = report.rknpu["result"], dict(report.user_properties)
    dynamic: Any = allure.dynamic  # it has no types
    test.labels = [label for label in test.labels if label.name not in (*_LABELS, _REQUIREMENT)]
    for name in _LABELS:
        if properties.get(name):
            dynamic.label(name, properties[name])
    for requirement in result["requirement"]:
        dynamic.label(_REQUIREMENT, requirement)
    for name in _PARAMETERS:
        if properties.get(name):
            dynamic.parameter(name, properties[name], excluded=True)
    for attachment in attachments_of(result["message"], report.sections):
        allure.attach(attachment.text, attachment.name, allure.attachment_type.TEXT)
    test.status = _STATUS.get(result["outcome"], _OTHERS)
    if result["message"]:
        trace = test.statusDetails.trace if test.statusDetails is not None else None
        test.statusDetails = StatusDetails(message=result["message"], trace=trace)

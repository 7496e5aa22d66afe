"""The two formats that a run writes, checked: JSON schema for results.jsonl, Jenkins' shape for JUnit."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
from lxml import etree

_JENKINS = Path(__file__).parents[1] / "report" / "jenkins-junit.xsd"


def results_validator() -> Any:
    """Validates one line of results.jsonl, dates included."""
    schema = json.loads(resources.files("pytest_rknpu.report").joinpath("results.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def validate_junit(text: str) -> Any:
    """Validate a document and return its root.

    The one thing that Jenkins' schema does not know, ``properties`` in a test case, must be the only thing.
    """
    root = etree.fromstring(text.encode())
    schema = etree.XMLSchema(etree.parse(_JENKINS))
    bare = etree.fromstring(text.encode())
    for properties in bare.findall(".//testcase/properties"):
        properties.getparent().remove(properties)
    schema.assertValid(bare)
    return root


def properties_of(element: Any) -> dict[str, str]:
    """The properties of a suite or test case."""
    return {each.get("name"): each.get("value") for each in element.findall("properties/property")}

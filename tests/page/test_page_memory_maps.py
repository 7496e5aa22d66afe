"""Memory maps: from the real build logs to the page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from lxml import html
from page.pages import result, small
from toolchain.build_logs import NAMES, stored

from pytest_rknpu.report.page import memory_maps as page_module
from pytest_rknpu.report.page import page_text
from pytest_rknpu.report.page.memory_maps import MemoryMap, drawn, memory_maps
from pytest_rknpu.report.results import Result, Results
from pytest_rknpu.toolchain import memory_map as toolchain_module
from pytest_rknpu.toolchain.memory_map import MOST_TENSORS, memory_map
from pytest_rknpu.toolchain.memory_plan import Tensor, check_plan
from pytest_rknpu.verdict import Measurement, Outcome


def carrying(text: str) -> Result:
    """A MEM-12 result with this map."""
    measured = (Measurement(toolchain_module.MEASUREMENT, text, ""),)
    return result("MEM-12", "alpha", Outcome.PASS, evidence="simulator", measurements=measured)


def map_of(name: str) -> MemoryMap:
    """The map of a stored build log, through the text that results carry."""
    log = stored(name)
    plan = log.log.plans[0]
    (found,) = memory_maps([carrying(memory_map(plan, check_plan(plan, log.graph).tensors))])
    return found


def test_both_rooms_mean_the_same_measurement() -> None:
    assert page_module.MEASUREMENT == toolchain_module.MEASUREMENT


@pytest.mark.parametrize("name", NAMES)
def test_the_map_is_what_the_log_says(name: str) -> None:
    log = stored(name)
    plan = log.log.plans[0]
    tensors = check_plan(plan, log.graph).tensors
    if not tensors:
        pytest.skip("a plan without tensors has no map")
    found = map_of(name)
    assert (found.internal, found.weights) == (plan.internal_total.bytes, plan.weight_total.bytes)
    assert found.left_out == 0
    # Long names are cut.
    places = [(one.start, one.end - one.start, one.born, one.dies) for one in tensors]
    assert sorted((one.offset, one.size, one.first, one.last) for one in found.tensors) == sorted(places)
    layer, used = found.peak
    assert used <= found.end - found.start
    assert all(found.used_in(other) <= used for other in range(found.layers + 1))
    assert found.used_in(layer) == used


def test_what_is_needed_in_a_layer_counts_shared_bytes_once() -> None:
    tensors = [Tensor("a", 0, 100, 0, 1), Tensor("b", 50, 150, 1, 2), Tensor("c", 200, 210, 1, 1, True)]
    (found,) = memory_maps([carrying(memory_map(stored(NAMES[0]).log.plans[0], tensors))])
    assert [found.used_in(layer) for layer in range(3)] == [100, 160, 100]
    assert found.peak == (1, 160)


def test_large_plans_are_bounded_and_say_so() -> None:
    tensors = [Tensor(f"{'n' * 200}{place}", 0, place + 1, 0, 1) for place in range(5000)]
    text = memory_map(stored(NAMES[0]).log.plans[0], tensors)
    assert len(text) < 25_000
    (found,) = memory_maps([carrying(text)])
    assert len(found.tensors) == MOST_TENSORS
    assert found.left_out == 5000 - MOST_TENSORS
    assert min(one.size for one in found.tensors) == 5000 - MOST_TENSORS + 1  # the largest are kept
    assert f"{found.left_out} smaller tensors are not shown" in drawn(found).figure.words


GOOD = {"layers": 2, "internal": 9, "weights": 9, "left_out": 0, "tensors": [["a", 0, 9, 0, 2, 0]]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({**GOOD, "tensors": [["a", 0]]}),
        json.dumps({**GOOD, "tensors": [["a", 0, 9, 2, 1, 0]]}),
        json.dumps({**GOOD, "tensors": [["a", 0, 9, 0, 3, 0]]}),
        json.dumps({**GOOD, "tensors": [["a", -1, 9, 0, 2, 0]]}),
        json.dumps({**GOOD, "layers": 10**12}),
        json.dumps({**GOOD, "tensors": []}),
        "[" * 100_000,
    ],
)
def test_what_is_no_map_is_passed_over(text: str) -> None:
    assert list(memory_maps([carrying(json.dumps(GOOD))])) != []
    assert list(memory_maps([carrying(text)])) == []


def test_the_page_shows_the_map_and_its_figures() -> None:
    log = stored("digits_cnn-int8-rk3588-2.5.0")
    text = memory_map(log.log.plan, check_plan(log.log.plan, log.graph).tensors)
    nasty = text.replace('"input"', '"</script><b>"')
    results = small()
    tests = (carrying(text), carrying(nasty))
    document = html.fromstring(page_text(Results(results.run, tests, torn=False)))
    section = document.get_element_by_id("maps")
    assert len(section.xpath(".//figure//*[local-name()='svg']")) == 2
    words = section.text_content()
    assert "internal memory 9,984 B, weights 20,992 B; 8 tensors over 9 layers" in words
    assert "most is needed in layer 2: 9,216 B" in words
    rows = [[cell.text for cell in row] for row in section.xpath(".//tbody/tr")]
    assert rows[1] == ["first.relu", "768", "8,192", "1", "2"]
    assert ["</script><b>", "0", "768", "0", "1"] in rows
    ids = document.xpath("//@id")
    assert len(ids) == len(set(ids))
    details = document.get_element_by_id("tests").text
    assert "shown under Memory maps" in details
    assert "first.relu" not in details


def test_equal_plans_are_drawn_once_and_name_all_tests() -> None:
    both = [carrying(json.dumps(GOOD)), replace(carrying(json.dumps(GOOD)), board="beta")]
    (found,) = memory_maps(both)
    title = drawn(found).figure.title
    assert "alpha: " in title
    assert "beta: " in title


def test_without_a_map_there_is_no_section() -> None:
    results = small()
    plain = replace(results, tests=tuple(test for test in results.tests if test.requirement != ("MEM-12",)))
    document = html.fromstring(page_text(plain))
    assert not document.xpath("//*[@id='maps']")
    assert not document.xpath("//a[@href='#maps']")

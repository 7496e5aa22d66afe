"""What the tables promise and know, against what four toolkit versions said; and the judgement of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from sparse.real_logs import network, observed, plan_of

from pytest_rknpu.errors import ConformanceFailure, HarnessError, ToolkitError, Waived
from pytest_rknpu.sparsity import Kind, Layer
from pytest_rknpu.sparsity import engagement as table
from pytest_rknpu.sparsity.engagement import OBSERVED, Ratio, Shown, judge, promised, ratio_of
from pytest_rknpu.sparsity.layers import Graph
from pytest_rknpu.sparsity.pattern import sparsity_of
from pytest_rknpu.sparsity.rows import rows_of, shown_by

CASES = [
    (toolkit, soc, name)
    for toolkit, by_soc in observed().items()
    for soc, by_name in by_soc.items()
    for name in by_name
]


def test_every_known_compiler_was_really_run() -> None:
    assert {(toolkit, soc) for toolkit, soc, _ in CASES} == set(OBSERVED)
    assert len(CASES) == 6 * 15


@pytest.mark.parametrize(("toolkit", "soc", "name"), CASES)
def test_the_table_says_what_the_toolkit_said(toolkit: str, soc: str, name: str) -> None:
    """Layer by layer: 14 to 15 networks for each version and SoC."""
    graph, said = Graph(network(name)), observed()[toolkit][soc][name]
    data_type = "FLOAT16" if name.startswith("half") else "INT8"
    for layer in graph.layers():
        flattened = name.startswith("flat") and layer.name == "linear"
        kind = sparsity_of(graph.weights(layer)).kind
        one = Shown(layer, kind, data_type, Ratio(said[layer.name]), flattened)
        assert table.observed(one, OBSERVED[toolkit, soc]) is one.ratio, layer.name


# What the guide promises, and what is shown instead (None: just that), for layers within the limits.
PROMISES = {
    ("rk3576", Kind.INPUT): (Ratio.INPUT, None),
    ("rk3576", Kind.OUTPUT): (Ratio.OUTPUT, None),
    ("rk3576", Kind.GRID): (Ratio.BOTH, None),
    ("rk3576", Kind.NONE): (Ratio.DENSE, None),
    ("rv1126b", Kind.INPUT): (Ratio.INPUT, Ratio.DENSE),
    ("rv1126b", Kind.OUTPUT): (Ratio.OUTPUT, None),
    ("rv1126b", Kind.GRID): (Ratio.BOTH, Ratio.OUTPUT),
    ("rv1126b", Kind.NONE): (Ratio.DENSE, None),
}


def layer(
    outputs: int = 64, inputs: int = 64, groups: int = 1, type: str = "Conv2d", name: str = "a"
) -> Layer:
    return Layer(name, type, (outputs, inputs, 3, 3), groups, "float", "w", False)


@pytest.mark.parametrize(("soc", "kind"), PROMISES)
def test_promised_and_known(soc: str, kind: Kind) -> None:
    """Each of the four ratios that the log may show: as promised, known, or a failure."""
    promise, known = PROMISES[soc, kind]
    for ratio in Ratio:
        one = Shown(layer(), kind, "INT8", ratio)
        assert promised(one) is promise
        if ratio is promise and known is None:
            judge([one], "2.5.0", soc)
        elif ratio is promise:
            with pytest.raises(HarnessError, match=r"correct sparsity/engagement\.py"):
                judge([one], "2.5.0", soc)
        elif ratio is known:
            with pytest.raises(Waived, match="it finds 4:2 along input channels"):
                judge([one], "2.5.0", soc)
        else:
            with pytest.raises(
                ConformanceFailure, match=f"SparseRatio {ratio.value[:2]}.*, not {promise.value[:2]}"
            ):
                judge([one], "2.5.0", soc)


def test_an_unknown_version_has_no_known_deviations() -> None:
    one = Shown(layer(), Kind.INPUT, "INT8", Ratio.DENSE)
    with pytest.raises(ConformanceFailure, match=r"RKNN-Toolkit2 2\.6\.0 for rv1126b: a: weights 4:2"):
        judge([one], "2.6.0", "rv1126b")
    judge([replace(one, ratio=Ratio.INPUT)], "2.6.0", "rv1126b")


def test_one_unknown_deviation_outweighs_known_ones() -> None:
    known = Shown(layer(name="known"), Kind.INPUT, "INT8", Ratio.DENSE)
    worse = Shown(layer(name="worse"), Kind.OUTPUT, "INT8", Ratio.DENSE)
    with pytest.raises(ConformanceFailure, match="worse") as failure:
        judge([known, worse], "2.5.0", "rv1126b")
    assert "known" not in str(failure.value)


@pytest.mark.parametrize(
    "outside",
    [
        layer(outputs=48),
        layer(inputs=48),
        layer(groups=2),
        layer(type="ConvTranspose2d"),
        layer(type="Conv1d"),
    ],
)
@pytest.mark.parametrize("kind", [Kind.INPUT, Kind.OUTPUT, Kind.GRID])
def test_outside_the_limits_dense_is_promised(outside: Layer, kind: Kind) -> None:
    one = Shown(outside, kind, "INT8", Ratio.DENSE)
    assert promised(one) is Ratio.DENSE
    assert promised(replace(one, layer=layer(), data_type="FLOAT16")) is Ratio.DENSE


def test_grouped_layers_that_run_sparse_are_no_known_deviation() -> None:
    for soc, kind in itertools.product(("rk3576", "rv1126b"), (Kind.INPUT, Kind.OUTPUT, Kind.GRID)):
        one = Shown(layer(groups=2), kind, "INT8", Ratio.OUTPUT)
        with pytest.raises(ConformanceFailure, match=r"a \(it has 2 groups\)"):
            judge([one], "2.5.0", soc)


def test_no_layer_is_no_pass() -> None:
    with pytest.raises(HarnessError, match="nothing was judged"):
        judge([], "2.5.0", "rk3576")


def test_layers_of_one_kind_share_a_sentence() -> None:
    shown = [Shown(layer(name=name), Kind.GRID, "INT8", Ratio.DENSE) for name in ("a", "b")]
    with pytest.raises(ConformanceFailure) as failure:
        judge(shown, "2.5.0", "rk3576")
    assert str(failure.value) == (
        "RKNN-Toolkit2 2.5.0 for rk3576: a, b: weights 16:4, int8: SparseRatio 0%, not 75%"
    )


def test_a_new_word_of_the_log_is_an_error() -> None:
    assert ratio_of(None) is Ratio.DENSE
    with pytest.raises(ToolkitError, match=r"SparseRatio '50%\(XC\)'; known: 0%"):
        ratio_of("50%(XC)")


def test_rows_of_real_logs_are_found() -> None:
    """Linear layers are renamed, groups are split."""
    shown = shown_by(network("beyond1"), plan_of("beyond1-rk3576").layers)
    ratios = {one.layer.name: one.ratio.value for one in shown}
    assert ratios == observed()["2.5.0"]["rk3576"]["beyond1"]
    rows = plan_of("beyond1-rk3576").layers
    names = [row.name for row in rows_of("two_groups", rows)]
    assert names == ["Conv:two_groups_group_0", "Conv:two_groups_group_1"]
    assert [row.name for row in rows_of("logits", rows)] == ["Conv:logits#2"]
    # No layer is taken for another whose name begins alike.
    assert rows_of("inputs", rows) == rows_of("", rows) == []


def test_a_layer_that_is_missing_in_the_log_is_an_error() -> None:
    with pytest.raises(ToolkitError, match="no row for the layer 'square'"):
        shown_by(network("aligned2"), plan_of("aligned2-rk3576", ("Conv:square", "Conv:round ")).layers)


def test_parts_that_differ_are_an_error() -> None:
    text = next(line for line in _lines("beyond1-rk3576") if "two_groups_group_1" in line)
    plan = plan_of("beyond1-rk3576", (text, text.replace(" 0% ", " 50%(IC) ")))
    with pytest.raises(ToolkitError, match="parts of the layer 'two_groups' differ"):
        shown_by(network("beyond1"), plan.layers)


def _lines(name: str) -> list[str]:
    from sparse.real_logs import log_text

    return [line for line in log_text(name).splitlines() if "%" in line]

"""The parser of the compiler's tables: on real logs, on hand-made rows of each odd form, and on garbage."""

from __future__ import annotations

import contextlib
import random
import re

import pytest
from build_logs import NAMES, stored
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.build_log import parse_build_log
from pytest_rknpu.toolchain.log_rows import UnknownRow, layer_row, memory_total, read_row, weight_row

MANY = [name for name in NAMES if name.startswith(("detector", "attention", "unet"))]


@pytest.mark.parametrize("name", NAMES)
def test_real_logs(name: str) -> None:
    """Every row is read, and what the log says twice it says equally."""
    log, provenance = stored(name).log, stored(name).provenance
    assert log.toolkit_version == log.compiler_version == provenance["toolkit"]
    assert len(log.plans) == (2 if provenance["variant"] == "dynamic" else 1)
    text = re.sub(r"\x1b\[[0-9;]*m", "", stored(name).text)
    rows = re.findall(r"^D RKNN: \[[0-9:.]+\] \d+ ", text, re.MULTILINE)
    assert len(rows) == sum(len(p.layers) + len(p.reads) + len(p.weights) for p in log.plans)
    for plan in log.plans:
        assert [layer.id for layer in plan.layers] == list(range(len(plan.layers)))
        users = {layer.id: layer.op_type for layer in plan.layers}
        assert all(users[row.id] == row.user for row in (*plan.reads, *plan.weights))
        places = [row.placement for row in (*plan.reads, *plan.weights)]
        assert all(place.end - place.start == place.size for place in places)
        assert {layer.target for layer in plan.layers} <= {"NPU", "CPU"}
        assert any(layer.cycles.total > 0 for layer in plan.layers) or provenance["model"] == "constant_free"
        has_ratios = any(layer.sparse_ratio for layer in plan.layers)
        sparse_soc = provenance["soc"] in ("rk3576", "rv1126b")
        assert has_ratios == (sparse_soc and provenance["model"] != "constant_free")


def test_the_logs_are_of_many_kinds() -> None:
    """What the fixtures have to cover, so that nobody thins them out by chance."""
    kinds = [stored(name).provenance for name in NAMES]
    assert {kind["soc"] for kind in kinds} == {"rk3588", "rk3576", "rk3566", "rv1126b", "rv1106"}
    assert {kind["toolkit"] for kind in kinds} == {"2.2.0", "2.3.0", "2.3.2", "2.5.0"}
    assert {kind["variant"] for kind in kinds} == {"int8", "float16", "dynamic", "pruned", "compressed"}
    plans = [plan for name in NAMES for plan in stored(name).log.plans]
    layers = [layer for plan in plans for layer in plan.layers]
    places = [row.placement for plan in plans for row in plan.reads]
    ratios = {layer.sparse_ratio.text for layer in layers if layer.sparse_ratio}
    assert {"0%", "50%(IC)", "50%(OC)", "75%"} <= ratios
    assert any(layer.cycles.ddr < 0 for layer in layers)
    assert any(layer.rw_kb < 0 for layer in layers)
    assert any(layer.inputs_cut for layer in layers)
    assert any(layer.outputs_cut for layer in layers)
    assert any(not layer.name for layer in layers)
    assert any(layer.target == "CPU" and "Operator" not in layer.op_type for layer in layers)
    assert any(place.at_end for place in places)
    assert any(not plan.weights for plan in plans)
    assert any(plan.internal_total.bytes > 2_000_000 for plan in plans)


@pytest.mark.parametrize("name", NAMES)
def test_no_path_of_the_building_machine_is_in_a_log(name: str) -> None:
    assert not re.search(r"(?<![\w.])/(tmp|home|root|work|usr|opt|var)/", stored(name).text)


def test_names_with_spaces_and_other_letters() -> None:
    plan = stored("names-int8-rk3588-2.5.0").log.plan
    assert [layer.name for layer in plan.layers][2:4] == ["Conv:a name with spaces", "Conv:ünï|code"]
    assert "ünï|code.weight" in {weight.tensor for weight in plan.weights}
    assert len(plan.layers[1].name) > 100


def test_a_row_of_each_table() -> None:
    layer = layer_row(
        r"12   ConvAdd   INT8   NPU   (1,160,8,8),(40,160,1,1),(40),... (1,40,8,8) -9/640/640 75% -1 C",
        True,
    )
    assert (layer.id, layer.op_type, layer.data_type, layer.target) == (12, "ConvAdd", "INT8", "NPU")
    assert layer.input_shapes == ((1, 160, 8, 8), (40, 160, 1, 1), (40,))
    assert (layer.inputs_cut, layer.outputs_cut, layer.output_shapes) == (True, False, ((1, 40, 8, 8),))
    assert (layer.cycles.ddr, layer.cycles.npu, layer.cycles.total) == (-9, 640, 640)
    assert layer.sparse_ratio is not None
    assert (layer.sparse_ratio.share, layer.sparse_ratio.axis) == (0.75, None)
    assert (layer.rw_kb, layer.name) == (-1.0, "C")
    read = read_row(
        "5 MaxPool joined INT8 NC1HWC2 (1,48,32,32) (1,3,32,32,16) | 0x00019000*0x00025000 0x0000c000"
    )
    assert (read.tensor, read.shape, read.native_shape[-1]) == ("joined", (1, 48, 32, 32), 16)
    assert (read.placement.start, read.placement.end, read.placement.size) == (0x19000, 0x25000, 0xC000)
    assert read.placement.at_end
    weight = weight_row("1 Conv INT32 () | 0x00000000 0x00000004 0x00000004")
    assert (weight.tensor, weight.shape, weight.placement.at_end) == ("", (), False)


def test_ratio_and_name_may_be_missing() -> None:
    row = r"0 InputOperator INT8 CPU \ (1,3,8,8) 0/0/0"
    for tail, sparse, name in [
        (" 0 a b", True, "a b"),
        (" 0", True, ""),
        (" 0", False, ""),
        (r" \ 0 c", True, "c"),
    ]:
        layer = layer_row(row + tail, sparse)
        assert (layer.sparse_ratio, layer.rw_kb, layer.name, layer.input_shapes) == (None, 0.0, name, ())


@pytest.mark.parametrize(
    ("text", "size", "rounding"),
    [
        ("0KB", 0, 0),
        ("148KB", 151552, 1),
        ("27.125KB", 27776, 1),
        ("1000KB", 1024000, 6),
        ("12345.6KB", 12641894, 52),
        ("1.04858e+06KB", 1073745920, 5120),
        ("3MB", 3145728, 6),
    ],
)
def test_totals(text: str, size: int, rounding: int) -> None:
    """Six digits are printed, trailing zeros are not: the text alone does not tell how exact it is."""
    total = memory_total(text)
    assert (total.bytes, total.text) == (size, text)
    assert total.rounding == rounding


@pytest.mark.parametrize(
    "row",
    [
        "",
        "1 Conv INT8 NPU",
        r"x Conv INT8 NPU \ (1) 0/0/0 0 n",
        r"1 Conv INT8 NPU (1,2 (1) 0/0/0 0 n",
        r"1 Conv INT8 NPU (1)(2) (1) 0/0/0 0 n",
        r"1 Conv INT8 NPU \ (1) 0/0 0 n",
        r"1 Conv INT8 NPU \ (1) 0/0/0 50%(IC) 0 n",
        r"1 Conv INT8 NPU \ (1) 0/0/0 much n",
    ],
)
def test_other_layer_rows_are_refused(row: str) -> None:
    with pytest.raises(UnknownRow):
        layer_row(row, False)


def test_a_ratio_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownRow, match="SparseRatio"):
        layer_row(r"1 Conv INT8 NPU \ (1) 0/0/0 half% 0 n", True)
    with pytest.raises(UnknownRow, match=r"RW\(KB\)"):
        layer_row(r"1 Conv INT8 NPU \ (1) 0/0/0 50%", True)


TEXT = stored("detector-int8-rv1126b-2.5.0").text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SparseRatio", "Sparsity", r"line \d+: this is no known header of the Network Layer"),
        (" NativeShape ", " Native ", r"line \d+: this is no known header of the Feature Tensor"),
        ("9216/9216", "9216|9216", r"line \d+: this is no row of the Network Layer .*cycles"),
        (
            "0x00003000 0x0000b000",
            "12288 45056",
            r"line \d+: this is no row of the Feature Tensor .*addresses",
        ),
        ("Const Tensor Information Table", "Constants", "the Const Tensor Information Table is missing"),
        ("Total Internal Memory Size", "Internal", "no 'Total Internal Memory Size:'"),
        ("Memory Size: 160", "Memory Size: about 160", r"line \d+: 'about 160.*' is not a size"),
        ("Network Layer Information Table", "Layers", r"no 'Network Layer Information Table'.*verbose\?"),
    ],
)
def test_an_unknown_layout_names_the_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ToolkitError, match=message):
        parse_build_log(TEXT.replace(old, new))


def without(part: str) -> str:
    """The log without the first row that holds ``part``."""
    lines = TEXT.split("\n")
    del lines[next(number for number, line in enumerate(lines) if part in line)]
    return "\n".join(lines)


def doctored(pattern: str, new: str) -> str:
    text, count = re.subn(pattern, new, TEXT, count=1, flags=re.MULTILINE)
    assert count == 1
    return text


ROW = r"^(D RKNN: \S+ )"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (without(" NPU "), "layers are not numbered from 0 on: rows are missing, or there twice"),
        (doctored(ROW + r"2 (.* NPU )", r"\g<1>3 \g<2>"), "layers are not numbered from 0 on"),
        (
            doctored(ROW + r"(\d+) (.*\| 0x)", r"\g<1>977 \g<3>"),
            "belongs to layer 977, a .*; the layer table says nothing of it",
        ),
        (
            doctored(ROW + r"(\d+ +)Conv\w*( .*\| 0x)", r"\g<1>\g<2>Sigmoid\g<3>"),
            "a Sigmoid; the layer table says Conv",
        ),
        (doctored(r"(\| 0x0000\w+[ *]0x\w+) 0x\w+", r"\g<1> 0x00000007"), "is not its size of 0x7"),
    ],
)
def test_a_log_that_lost_rows_or_contradicts_itself_is_refused(text: str, message: str) -> None:
    """What is judged is all of the plan, or nothing."""
    with pytest.raises(ToolkitError, match=rf"line \d+ on: .*{message}"):
        parse_build_log(text)


def test_a_table_that_is_gone_is_missed() -> None:
    """Without its rows, too, the log is not taken for that of a model without constants."""
    rows = [line for line in TEXT.split("\n") if "Const Tensor" not in line]
    start = next(
        number
        for number, line in enumerate(rows)
        if "Tensor" in line and "NativeShape" not in line and "OrigShape" in line
    )
    kept = [line for number, line in enumerate(rows) if number < start or "| 0x" not in line]
    with pytest.raises(ToolkitError, match=r"has weights, but there is no Const Tensor Information Table"):
        parse_build_log("\n".join(kept))


def test_a_named_line_is_that_of_the_file() -> None:
    lines = TEXT.split("\n")
    wrong = next(number for number, line in enumerate(lines) if "ConvExSwish" in line)
    lines[wrong] = lines[wrong].replace("NPU", "")
    with pytest.raises(ToolkitError, match=rf"line {wrong + 1}: "):
        parse_build_log("\n".join(lines))


@given(st.integers(0, len(TEXT)), st.integers(0, 400), st.text(max_size=60))
def test_a_damaged_log_is_read_or_refused(position: int, removed: int, inserted: str) -> None:
    _read_or_refused(TEXT[:position] + inserted + TEXT[position + removed :])


@given(st.lists(st.sampled_from(TEXT.split("\n")[-110:]), max_size=60))
def test_lines_in_any_order_are_read_or_refused(lines: list[str]) -> None:
    _read_or_refused("\n".join(lines))


@given(st.text(alphabet=st.sampled_from("0123456789٣(),.-/%|x*\\ eE+KB\t\r\n\x1b"), max_size=200))
def test_rows_of_likely_characters_are_read_or_refused(row: str) -> None:
    table = TEXT[TEXT.index("D RKNN") :]
    victim = random.Random(row).choice([line for line in table.split("\n") if "NPU" in line or "0x0" in line])
    _read_or_refused(TEXT.replace(victim, "D RKNN: [00:00:00.000] " + row))


def _read_or_refused(text: str) -> None:
    with contextlib.suppress(ToolkitError):
        assert parse_build_log(text).plans

"""What a connected board's figures look like, in every form that was seen, and in none that was.

The texts follow what the SDK's documents print and what its users posted; only figures and names differ.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.layer_errors import parse_layer_errors
from pytest_rknpu.toolchain.memory_report import parse_memory
from pytest_rknpu.toolchain.performance_report import parse_performance
from pytest_rknpu.toolchain.sdk_version import parse_sdk_version

RULE = "-" * 120
NEW_LAYERS = f"""{RULE}
                         Network Layer Information Table
{RULE}
ID   OpType           DataType Target InputShape                        OutputShape        \
Cycles(DDR/NPU/Total)    Time(us)     MacUsage(%)      WorkLoad(0/1/2)      RW(KB)       FullName
{RULE}
1    InputOperator    UINT8    CPU    \\                                 (1,3,640,640)      \
0/0/0                    4            \\                0.0%/0.0%/0.0%       0            InputOperator:images
2    ConvExSwish      UINT8    NPU    (1,3,640,640),(16,3,3,3),(16)     (1,16,320,320)     \
121323/921600/921600     1861         2.41/0.00/0.00   100.0%/0.0%/0.0%     10802        Conv:/model.0/conv
5    Split            INT8     NPU    (1,32,160,160),(2)                (1,16,160,160),... \
623388/0/623388          1195         \\                100.0%/0.0%/0.0%     7200         Split:/model.2/Split
6    Softmax          FLOAT16  CPU    (1,80,8400)                       (1,80,8400)        \
0/0/0                    557                           0.0%/0.0%/0.0%       16491
7    OutputOperator   INT8     CPU    (1,3,60,60)                       \\                  \
0/0/0                    23           \\                0.0%/0.0%/0.0%       112          OutputOperator:out
{RULE}
Total Operator Elapsed Per Frame Time(us): 3640
Total Memory Read/Write Per Frame Size(KB): 289739
{RULE}
OpType             CallNumber   CPUTime(us)  GPUTime(us)  NPUTime(us)  TotalTime(us)  TimeRatio(%)
ConvExSwish        57           0            0            100965       100965         78.61%
"""
OLD_LAYERS = """===========================================================
                            Performance
        #### The performance result is just for debugging, ####
        #### may worse than actual performance!            ####
===========================================================
ID   OpType    DataType Target InputShape    OutputShape    DDR Cycles    \
NPU Cycles    Total Cycles   Time(us)    MacUsage(%)    WorkLoad(0/1/2)-ImproveTherical    Task Number    \
Task Size    Regcmd Size    RW(KB)    FullName
1    InputOperator    UINT8    CPU    \\    (1,3,224,224)    0    \
0    0    21    \\    0.0%/0.0%/0.0% - Up:0.0%    0    \
0    0    147.00    InputOperator:data
2    ConvRelu    UINT8    NPU    (1,3,224,224),(32,3,3,3),(32)    (1,32,112,112)    94150    \
10584    94150    375    2.82    0.0%/0.0%/0.0% - Up:0.0%    0    \
0    0    543.75    Conv:conv1
Total Operator Elapsed Time(us): 20274
Total Memory RW Amount(MB): 0
Operator Time-Consuming Ranking:
OpType    Call Number    CPU Time(us)    NPU Time(us)    Total Time(us)    Time Ratio(%)
ConvRelu    36    0    13166    13166    64.94
"""
TOTALS = """===========================================================
                               Performance
===========================================================
CPU Current Frequency List:
    - 1800000
    - 2256000
NPU Current Frequency List:
    - 1000000000
DDR Current Frequency List:
    - 2112000000
Total Time(us): 17219
FPS: 58.08
===========================================================
"""


def test_layers_of_2x() -> None:
    report = parse_performance(NEW_LAYERS)
    assert report.total_us == 3640
    assert [(layer.id, layer.target, layer.time_us, layer.name) for layer in report.layers] == [
        (1, "CPU", 4, "InputOperator:images"),
        (2, "NPU", 1861, "Conv:/model.0/conv"),
        (5, "NPU", 1195, "Split:/model.2/Split"),
        (6, "CPU", 557, ""),  # MacUsage empty, FullName empty
        (7, "CPU", 23, "OutputOperator:out"),
    ]
    assert report.total_us == sum(layer.time_us for layer in report.layers)
    assert report.cpu_operators == ("Softmax",)


def test_layers_of_1x() -> None:
    report = parse_performance(OLD_LAYERS)
    assert report.total_us == 20274
    assert [(layer.operator, layer.time_us, layer.name) for layer in report.layers] == [
        ("InputOperator", 21, "InputOperator:data"),
        ("ConvRelu", 375, "Conv:conv1"),
    ]


def test_totals_with_frequencies() -> None:
    report = parse_performance(TOTALS)
    assert (report.total_us, report.fps, report.layers) == (17219, 58.08, ())
    assert report.frequencies == {
        "CPU": (1800000, 2256000),
        "NPU": (1000000000,),
        "DDR": (2112000000,),
    }


@pytest.mark.parametrize(
    "report",
    [
        "=== Performance ===Total Time(us): 7140FPS: 140.06\n===",
        {"total_time": 7140, "fps": 140.06},
        {"Total Time(us)": 7140.0, "FPS": 140.06},
        {"perf": "Total Time(us): 7140\nFPS: 140.06"},
        {"result": {"total_time_us": 7140, "fps": 140.06}},
    ],
    ids=["one-line", "dict", "dict-as-printed", "text-in-dict", "nested"],
)
def test_totals_in_other_forms(report: str | dict[str, Any]) -> None:
    found = parse_performance(report)
    assert (found.total_us, found.fps) == (7140, 140.06)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ("", "reported no total time"),
        ("E eval_perf: Get model perf detail success, but detail is empty!", "detail is empty"),
        ({}, "its keys: none"),
        ({"fps": 3}, "its keys: fps"),
        ({"total_time": True}, "no total time"),
        ({"total_time": math.inf}, "no total time"),
        (NEW_LAYERS.replace("121323/921600/921600", "121323 of 921600"), "row of an unknown layout: 2"),
        (NEW_LAYERS.replace("NPU    (1,32", "DSP    (1,32"), "row of an unknown layout: 5"),
    ],
)
def test_what_is_no_performance(report: str | dict[str, Any], words: str) -> None:
    with pytest.raises(ToolkitError, match=words):
        parse_performance(report)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["CPU", "NPU", "GPU"]), st.integers(0, 10**7), st.integers(-(10**9), 10**9)
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(0, 10**8),
)
def test_any_table_is_read_back(rows: list[tuple[str, int, int]], total: int) -> None:
    lines = [
        "ID OpType DataType Target InputShape OutputShape Cycles(DDR/NPU/Total) Time(us) RW(KB) FullName"
    ]
    lines += [
        f"{number}  Conv INT8 {target} (1,3),(4) (1,4) {cycles}/0/{cycles}  {time}  \\  -3  Conv:n{number}"
        for number, (target, time, cycles) in enumerate(rows)
    ]
    report = parse_performance("\n".join([*lines, f"Total Operator Elapsed Per Frame Time(us): {total}"]))
    assert report.total_us == total
    assert [(layer.target, layer.time_us) for layer in report.layers] == [(t, time) for t, time, _ in rows]
    assert [layer.name for layer in report.layers] == [f"Conv:n{number}" for number in range(len(rows))]


MEMORY = """======================================================
            Memory Profile Info Dump
======================================================
NPU model memory detail(bytes):
    Weight Memory: 3.53 MiB
    Internal Tensor Memory: 1.67 MiB
    Other Memory: 473.00 KiB
    Total Memory: 5.66 MiB

INFO: When evaluating memory usage, we need consider
the size of model, current model size is: 4.09 MiB
======================================================
"""
OLD_MEMORY = """NPU model memory detail(bytes):
    Total Weight Memory: 3.53 MiB
    Total Internal Tensor Memory: 1.67 MiB
    Total Memory: 5.58 MiB
"""


def test_memory_as_a_dict_of_bytes() -> None:
    used = parse_memory(
        {
            "weight_memory": 3698688,
            "internal_memory": 1756160,
            "other_memory": 484352,
            "total_memory": 5939200,
        }
    )
    assert (used.weight, used.internal, used.other, used.total) == (3698688, 1756160, 484352, 5939200)
    assert (used.model, used.resolution) == (None, 0)


def test_memory_with_the_keys_of_the_chinese_reference() -> None:
    used = parse_memory({"weight_memory": 1, "internal memory": 2, "total_model_allocation": 3})
    assert (used.weight, used.internal, used.total, used.other) == (1, 2, 3, None)


def test_memory_as_printed() -> None:
    used = parse_memory(MEMORY)
    assert used.weight == round(3.53 * 2**20)
    assert used.internal == round(1.67 * 2**20)
    assert used.other == 473 * 2**10
    assert used.total == round(5.66 * 2**20)
    assert used.model == round(4.09 * 2**20)
    # Half of 0.01 MiB; the dict above is of the same model.
    assert abs(used.weight - 3698688) <= used.resolution <= 5243
    assert abs(used.internal - 1756160) <= used.resolution


def test_memory_as_printed_by_1x() -> None:
    used = parse_memory(OLD_MEMORY)
    assert (used.weight, used.total) == (round(3.53 * 2**20), round(5.58 * 2**20))
    assert used.other is None


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({}, "no weight and no internal and no total memory; its keys: none"),
        ({"weight_memory": 1, "total_memory": 2}, "no internal memory"),
        (
            {"weight_memory": math.inf, "internal_memory": math.nan, "total_memory": 2},
            "no weight and no internal memory",
        ),
        ({"weight_memory": "1", "internal_memory": 2, "total_memory": 2}, "no weight memory"),
        (
            "System memory:\n    maximum allocation : 39.08 MiB",
            "no weight and no internal and no total memory",
        ),
    ],
)
def test_what_is_no_memory(report: str | dict[str, Any], words: str) -> None:
    with pytest.raises(ToolkitError, match=words):
        parse_memory(report)


@given(st.lists(st.integers(0, 2**32), min_size=3, max_size=3))
def test_printed_memory_is_as_exact_as_it_says(sizes: list[int]) -> None:
    names = ("Weight Memory", "Internal Tensor Memory", "Total Memory")
    text = "\n".join(f"    {name}: {size / 2**20:.2f} MiB" for name, size in zip(names, sizes, strict=True))
    used = parse_memory(text)
    for size, found in zip(sizes, (used.weight, used.internal, used.total), strict=True):
        assert abs(size - found) <= used.resolution + 1


@pytest.mark.parametrize(
    ("report", "api", "server", "runtime", "driver"),
    [
        (
            "RKNN VERSION:\n    API: 1.5.2 (8babfea build@2023-08-25T02:31:12)\n"
            "    DRV: rknn_server: 1.5.2 (8babfea build@2023-08-25T10:30:12)\n"
            "    DRV: rknnrt: 1.5.3b13 (42cbca6f5@2023-10-27T10:13:21)\n",
            "1.5.2 (8babfea build@2023-08-25T02:31:12)",
            "1.5.2 (8babfea build@2023-08-25T10:30:12)",
            "1.5.3b13 (42cbca6f5@2023-10-27T10:13:21)",
            None,
        ),
        (
            "API: librknn_api version: 1.5.1 (7c1b999 build@2023-07-18T12:45:49)\n"
            "DRV: rknn_server: 1.5.0 (a4d9293 build: 2023-06-01 18:02:59)\n"
            "    rknnrt: 1.5.1b19 (32afb0e92)\n",
            "1.5.1 (7c1b999 build@2023-07-18T12:45:49)",
            "1.5.0 (a4d9293 build: 2023-06-01 18:02:59)",
            "1.5.1b19 (32afb0e92)",
            None,
        ),
        (
            "D RKNNAPI: RKNN VERSION:\nD RKNNAPI:   API: 1.6.0 (159d2d3)\nD RKNNAPI:   DRV: 0.9.8\n",
            "1.6.0 (159d2d3)",
            None,
            None,
            "0.9.8",
        ),
        (
            "    API: 2.3.2 (a)\n    DRV: rknn_server: 2.3.2 (b)\n    DRV: rknnmrt: 2.3.2 (c)\n",
            "2.3.2 (a)",
            "2.3.2 (b)",
            "2.3.2 (c)",
            None,
        ),
        ({"api_version": "2.3.2 (a)", "drv_version": "0.9.8"}, "2.3.2 (a)", None, None, "0.9.8"),
    ],
    ids=["reference", "readme", "log-prefix", "mini-runtime", "dict"],
)
def test_versions(
    report: str | dict[str, str], api: str, server: str | None, runtime: str | None, driver: str | None
) -> None:
    found = parse_sdk_version(report)
    assert (found.api, found.server, found.runtime, found.driver) == (api, server, runtime, driver)


@pytest.mark.parametrize("report", ["", "RKNN VERSION:", {}, {"api_version": ""}, "DRV: rknnrt: 1.0.0"])
def test_what_names_no_version(report: str | dict[str, str]) -> None:
    with pytest.raises(ToolkitError, match="no API version"):
        parse_sdk_version(report)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never another exception: what a board prints is not ours to foresee."""
    for parse in (parse_performance, parse_memory, parse_sdk_version, parse_layer_errors):
        try:
            parse(text)
        except ToolkitError:
            continue


ANALYSIS = """
# simulator_error: calculate the output error of each layer of the simulator (compared to the 'golden' value).

layer_name                              simulator_error
                                    entire              single
                                 cos      euc        cos      euc
-----------------------------------------------------------------------
[Input] input                  1.00000 | 0.00000   1.00000 | 0.00000
[Conv] first
[Relu] first.relu              0.99999 | 0.39229   0.99998 | 0.39229
[Mul] zero                     nan | 0.00000       nan | 0.00000
"""
ON_A_BOARD_1X = """
layer_name                         simulator_error          runtime_error
                                entire    single         entire   single_sim
------------------------------------------------------------------------------
[Conv] conv1/scale
[Relu] relu1                     0.999967  0.999967       0.999960  0.999942
"""


def test_layer_errors_of_the_simulator() -> None:
    first, fused, relu, zero = parse_layer_errors(ANALYSIS)
    assert (first.operator, first.name, first.entire) == ("Input", "input", 1.0)
    assert (fused.name, fused.entire) == ("first", None)
    assert (relu.entire, relu.single, relu.runtime_entire) == (0.99999, 0.99998, None)
    assert zero.entire != zero.entire  # nan: degenerate


def test_layer_errors_with_a_board() -> None:
    fused, relu = parse_layer_errors(ON_A_BOARD_1X)
    assert fused.runtime_entire is None
    assert (relu.entire, relu.runtime_entire, relu.runtime_single) == (0.999967, 0.99996, 0.999942)


@pytest.mark.parametrize(
    "text",
    ["", "[Conv] first\n", "[Conv] a 0.9\n", "[Conv] a 0.9 | 0.1 0.8\n", "[Conv] a 0.9 | x 0.9 | 0.1\n"],
)
def test_what_is_no_analysis(text: str) -> None:
    with pytest.raises(ToolkitError, match=r"measured no layer|unknown layout"):
        parse_layer_errors(text)


def test_layers_that_are_all_zero_have_no_cosine() -> None:
    """As 2.5.0 writes them for a constant sample; a bar may stand before a word too."""
    text = ANALYSIS_OF_ZERO
    layers = parse_layer_errors(text)
    assert [layer.entire is None or math.isnan(layer.entire) for layer in layers] == [True, False]


ANALYSIS_OF_ZERO = """layer_name   simulator_error
             entire            single
             cos      euc      cos      euc
[Input] input                   f_zero |  f_zero    f_zero |  f_zero
[Conv] first                    0.99999 | 0.1       0.99999 | 0.1
"""


KEYS = (
    "weight_memory",
    "internal memory",
    "total_memory",
    "other_memory",
    "total_time",
    "fps",
    "api_version",
)
FIGURES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(KEYS), FIGURES))
def test_any_dict_is_read_or_refused(report: dict[str, Any]) -> None:
    """What is read are numbers that can be compared: no infinity, nothing that is no number."""
    with contextlib.suppress(ToolkitError):
        used = parse_memory(report)
        assert all(isinstance(size, int) for size in (used.weight, used.internal, used.total))
    with contextlib.suppress(ToolkitError):
        assert math.isfinite(parse_performance(report).total_us)
    with contextlib.suppress(ToolkitError):
        assert parse_sdk_version(report).api

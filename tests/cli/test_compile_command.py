"""`rknpu compile`: files for several SoCs, what the compiler says of them, what can be wrong before that."""

from __future__ import annotations

import json
import re
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.cli.compile import Failed, Made, Wish, in_options, model_of_file, target_of, write
from pytest_rknpu.cli.compiled_text import builds_json, builds_text
from pytest_rknpu.errors import ConfigurationError, ToolkitError
from pytest_rknpu.session.builds import Build
from pytest_rknpu.toolchain import Compiled, ToolkitStatus, parse_build_log, read_header

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
LOGS = Path(__file__).parents[1]
needs_toolkit = pytest.mark.skipif(
    find_spec("rknn") is None, reason="no RKNN-Toolkit2 here; pip install 'pytest-rknpu[toolkit]'"
)
BOARDS = "".join(
    f'[[board]]\nname = "emu-{soc}"\nsoc = "{soc}"\nruntime = "emulator"\n\n' for soc in ("rk3576", "rv1106")
)
MODEL = '[[model]]\nname = "digits"\npath = "digits.onnx"\ncalibration = "samples.npz"\nsparse = 0\n'


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    """digits.onnx, quantised.onnx (QDQ), samples.npz and boards.toml."""
    model = models.load("digits_cnn")
    (tmp_path / "digits.onnx").write_bytes(model.float_onnx)
    (tmp_path / "quantised.onnx").write_bytes(model.qdq_onnx)
    np.savez(tmp_path / "samples.npz", input=model.calibration)
    (tmp_path / "boards.toml").write_text(BOARDS + MODEL)


@pytest.fixture
def some_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is installed, and nothing is built by it."""
    monkeypatch.setattr("pytest_rknpu.toolchain.status.require_toolkit", lambda: "9.9.9")


@needs_toolkit
def test_a_file_for_two_socs(rknpu, tmp_path: Path) -> None:
    answer = rknpu(
        *("compile", "digits.onnx", "--soc", "rk3588", "--soc", "RK3576"),
        *("--dtype", "int8", "--calibration", "samples.npz", "-o", "build"),
    )
    assert answer.code == 0, answer.err
    assert sorted(file.name for file in (tmp_path / "build").iterdir()) == [
        "digits_rk3576.rknn",
        "digits_rk3588.rknn",
    ]
    for soc in ("rk3588", "rk3576"):
        header = read_header((tmp_path / "build" / f"digits_{soc}.rknn").read_bytes())
        assert header.target_platforms == (soc,)
        assert header.inputs[0].data_type
        assert re.search(rf"^{soc}: build/digits_{soc}.rknn, \d+ bytes, RKNN-Toolkit2 ", answer.out, re.M)
    assert answer.out.count("predicted cycles: ") == 2
    assert "on the CPU: 7 Reshape:logits" in answer.out


@needs_toolkit
def test_one_soc_of_two_cannot_have_it(rknpu, tmp_path: Path) -> None:
    answer = rknpu("compile", "digits.onnx", "--soc", "rk3588", "--soc", "rv1106", "--json")
    assert answer.code == 1
    document = json.loads(answer.out)
    section = PAGE.read_text(encoding="utf-8").partition("\n### compile --json\n")[2].partition("\n## ")[0]
    assert list(document) == re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
    assert [failed["soc"] for failed in document["failed"]] == ["rv1106"]
    (build,) = document["builds"]
    (plan,) = build["plans"]
    for key in (*build, *plan):
        assert f"`{key}`" in section
    assert build["bytes"] == (tmp_path / "digits_rk3588.rknn").stat().st_size
    log = parse_build_log(Path(build["log"]).read_text())
    assert plan["weight"]["bytes"] == log.plan.weight_total.bytes
    assert plan["predicted_cycles"]["total"] == log.plan.predicted_cycles
    assert plan["layers"] == len(log.plan.layers)


@needs_toolkit
def test_a_model_of_boards_toml_for_its_boards(rknpu, tmp_path: Path) -> None:
    answer = rknpu("compile", "--model", "digits", "--json")
    assert answer.code == 0, answer.err
    assert [build["soc"] for build in json.loads(answer.out)["builds"]] == ["rk3576", "rv1106"]
    answer = rknpu("compile", "--model", "digits", "--soc", "rk3576", "-o", "one.rknn")
    assert answer.code == 0, answer.err
    assert "sparse: 0 of 5 layers\n" in answer.out  # nobody pruned it
    assert (tmp_path / "one.rknn").exists()


@pytest.mark.usefixtures("some_toolkit")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "give MODEL, a file, or --model NAME"),
        ("digits.onnx --model digits", "give MODEL, a file, or --model NAME"),
        ("--model digits --dtype int8", "takes its settings from boards.toml"),
        ("--model digitz", 'has no [[model]] "digitz" (did you mean "digits"?)'),
        ("--model digits --boards missing.toml", "missing.toml: no such file"),
        ("missing.onnx --soc rk3588", "does not exist"),
        ("samples.npz --soc rk3588", "MODEL: "),
        ("digits.onnx", "for which SoC? give --soc"),
        ("digits.onnx --soc rk3589", 'did you mean "rk3588"?'),
        ("digits.onnx --soc rk3588 --dtype int9", 'did you mean "int8"?'),
        ("digits.onnx --soc rk3588 --dtype int8", "--calibration: missing"),
        ("digits.onnx --soc rk3588 --calibration missing.npz", "--calibration"),
        ("digits.onnx --soc rk3588 --calibration digits.onnx", "--calibration: "),
        ("digits.onnx --soc rk3588 --mean 1,x --std 1,1", '--mean "1,x": give a number per channel'),
        ("digits.onnx --soc rk3588 --mean 1,1", "--std: missing; mean goes with it"),
        ("digits.onnx --soc rk3588 --mean 1,1 --std 1,1", "--mean: has 2 numbers"),
        ("digits.onnx --soc rk3588 --sparse 4", "'--sparse'"),
        ("digits.onnx --soc rk3588 --input 1,a", '--input "1,a": give NAME=SHAPE'),
        ("digits.onnx --soc rk3588 --input nowhere=1,1,8,8", "--input: the graph of"),
        ("quantised.onnx --soc rk3588", 'say "prequantised"'),
        ("digits.onnx --soc rk3588 --soc rk3576 -o one.rknn", "--output one.rknn is one file, for 2 SoCs"),
        ("digits.onnx --soc rk3588 -o samples.npz", "neither a folder nor an .rknn file"),
    ],
)
def test_mistakes_are_one_line(rknpu, line: str, words: str) -> None:
    answer = rknpu("compile", *line.split())
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert "[[model]]" not in answer.err or "--model" in line
    assert answer.err.count("\n") == 1


def test_no_toolkit(rknpu, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ToolkitStatus(None, "RKNN-Toolkit2 is not installed")
    monkeypatch.setattr("pytest_rknpu.toolchain.status.toolkit_status", lambda: missing)
    answer = rknpu("compile", "digits.onnx", "--soc", "rk3588")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "rknpu: RKNN-Toolkit2 is not installed; install it with: pip install 'pytest-rknpu[toolkit]'\n"
    )


def fake_build(tmp_path: Path, log: Path, soc: str) -> Made:
    file = tmp_path / f"{soc}.rknn"
    file.write_bytes(b"RKNN")
    compiled = Compiled(file, "0" * 64, log, None, "9.9.9", cached=False)
    return Made(soc, file, Build(compiled, parse_build_log(log.read_text()), None))


@pytest.mark.usefixtures("some_toolkit")
def test_socs_are_built_at_the_same_time(rknpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2, timeout=20)
    log = LOGS / "toolchain" / "logs" / "attention-int8-rk3588-2.5.0.log"

    def own_build(soc: str, model: object) -> Build:
        together.wait()
        return fake_build(tmp_path, log, soc).build

    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("pytest_rknpu.session.builds.own_build", own_build)
    answer = rknpu("compile", "digits.onnx", "--soc", "rk3588", "--soc", "rk3576")
    assert answer.code == 0, answer.err


@pytest.mark.usefixtures("some_toolkit")
def test_what_the_toolkit_says_against_a_soc(rknpu, monkeypatch: pytest.MonkeyPatch) -> None:
    def own_build(soc: str, model: object) -> Build:
        raise ToolkitError(f"Meet unsupported conv on {soc}")

    monkeypatch.setattr("pytest_rknpu.session.builds.own_build", own_build)
    answer = rknpu("compile", "digits.onnx", "--soc", "rk3588")
    assert (answer.code, answer.out) == (1, "rk3588: NOT BUILT: Meet unsupported conv on rk3588\n")
    answer = rknpu("compile", "--model", "digits", "--json")
    assert answer.code == 1
    assert [failed["soc"] for failed in json.loads(answer.out)["failed"]] == ["rk3576", "rv1106"]


def test_sparse_layers_of_a_stored_log(tmp_path: Path) -> None:
    log = next(file for file in sorted(LOGS.glob("*/logs/*rk3576*.log")) if "50%" in file.read_text())
    made = fake_build(tmp_path, log, "rk3576")
    sparse = [
        layer for layer in made.build.log.plan.layers if layer.sparse_ratio and layer.sparse_ratio.share
    ]
    assert sparse
    text = builds_text([made, Failed("rk3588", "why")], pruned=True)
    (line,) = (one for one in text.splitlines() if one.startswith("  sparse: "))
    assert line.startswith(f"  sparse: {len(sparse)} of ")
    assert f"{sparse[0].name} {sparse[0].sparse_ratio.share:.0%}" in line
    assert "  sparse: " not in builds_text([made], pruned=False)
    document = json.loads(builds_json("m", [made]))
    shares = [one["share"] for one in document["builds"][0]["plans"][0]["sparse"]]
    assert [share for share in shares if share] == [layer.sparse_ratio.share for layer in sparse]
    assert "rk3588 has no sparse inference" in builds_text([fake_build(tmp_path, log, "rk3588")], pruned=True)


def test_where_files_go(tmp_path: Path) -> None:
    assert target_of("m", "rk3588", None, 2) == Path("m_rk3588.rknn")
    assert target_of("m", "rk3588", Path("new"), 1) == Path("new/m_rk3588.rknn")
    assert target_of("m", "rk3588", Path("x.RKNN"), 1) == Path("x.RKNN")
    (tmp_path / "odd.rknn").mkdir()
    assert target_of("m", "rk3588", tmp_path / "odd.rknn", 2) == tmp_path / "odd.rknn" / "m_rk3588.rknn"


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "new" / "m.rknn"
    write(target, b"first")
    monkeypatch.setattr(
        "pytest_rknpu.report.whole_file.os.replace",
        lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")),
    )
    with pytest.raises(ConfigurationError, match=r"m\.rknn cannot be written: No space left"):
        write(target, b"second")
    assert [file.name for file in target.parent.iterdir()] == ["m.rknn"]
    assert target.read_bytes() == b"first"


@pytest.mark.usefixtures("some_toolkit")
def test_what_a_model_is_made_of_is_not_written_over(rknpu, tmp_path: Path) -> None:
    (tmp_path / "ready.rknn").write_bytes(b"precious")
    (tmp_path / "boards.toml").write_text(BOARDS + MODEL + 'rknn = { rk3588 = "ready.rknn" }\n')
    answer = rknpu("compile", "--model", "digits", "--soc", "rk3576", "-o", "ready.rknn")
    assert answer.code == 2
    assert "ready.rknn is a file that the model is made of" in answer.err
    assert (tmp_path / "ready.rknn").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('[[model]] "m", key "inputs": missing', "--input: missing"),
        ('[[model]] "m": it is odd', "it is odd"),
        ('key "std": missing; mean goes with it', "--std: missing; mean goes with it"),
        ('say layout = "nhwc" in key "inputs"', 'say layout = "nhwc" in --input'),
        ('key "unheard": of', 'key "unheard": of'),
    ],
)
def test_keys_are_told_as_options(message: str, words: str) -> None:
    assert in_options(message) == words


@pytest.mark.parametrize(
    ("stem", "name"),
    [("Mobile Net (v2)", "mobile-net-v2"), ("网络", "model"), ("-x", "x"), ("rk3588", "rk3588")],
)
def test_a_file_of_any_name(tmp_path: Path, stem: str, name: str) -> None:
    assert model_of_file(Wish(tmp_path / f"{stem}.onnx")).name == name

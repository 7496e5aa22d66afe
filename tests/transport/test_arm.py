"""The agent under CPython for arm64 and armhf, against the fake runtime compiled for them.

The tests are those that the agent passes on this host's own architecture (tests/agent): same requests, same
answers. Whatever needs no access to the agent's modules is taken over; what starts further processes there is
slow under emulation, and only run with ``RKNPU_TEST_FULL=1``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import execnet
import pytest
from arm_python import ArmPython, arm_python

from pytest_rknpu.agent import bootstrap_source, sources
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import Program
from pytest_rknpu.session.board_session import connect

TESTS = Path(__file__).parents[1]
MODEL = b"FAKE model for the fake runtime"
COMPILERS = {
    "arm64": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    "armhf": ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"),
}
TABLES = {"arm64": "aarch64", "armhf": "arm"}
FULL = bool(os.environ.get("RKNPU_TEST_FULL"))


@pytest.fixture(scope="module", params=["arm64", "armhf"])
def python(request: pytest.FixtureRequest) -> ArmPython:
    """A CPython of the boards' architecture."""
    return arm_python(request.param)


@pytest.fixture(scope="module")
def arm_runtime(python: ArmPython, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of the fake runtime, compiled for ``python``."""
    compiler, packages = COMPILERS[python.architecture]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here; install it with: apt-get install {packages}")
    library = tmp_path_factory.mktemp("arm") / "librknnrt.so"
    source = TESTS / "agent/fake_runtime.c"
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return str(library)


@pytest.fixture(scope="module")
def shipped(
    python: ArmPython, arm_runtime: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., dict[str, Any]]]:
    """A started agent under ``python``, with the fake model stored."""
    group = execnet.Group()
    channel = group.makegateway(f"popen//python={python.python}").remote_exec(bootstrap_source())
    channel.send(json.dumps(sources()))

    def ask(request: str, **keys: Any) -> dict[str, Any]:
        try:
            channel.send({"request": request, **keys})
        except execnet.DumpError as error:
            pytest.skip(f"the link carries no such request: {error}")
        reply: dict[str, Any] = channel.receive(120)
        return reply

    library = {"kind": "shared-object", "path": arm_runtime, "context_bits": 64}
    started = ask("start", library=library, model_cache=str(tmp_path_factory.mktemp("models")))
    assert started["ok"], started
    assert ask("put_model", sha256=hashlib.sha256(MODEL).hexdigest(), data=MODEL)["ok"]
    yield ask
    group.terminate(timeout=5)


@pytest.fixture
def agent(shipped: Callable[..., dict[str, Any]]) -> Iterator[Callable[..., dict[str, Any]]]:
    """Takes the place of the agent in this process."""
    yield shipped
    shipped("reset")


def module(path: str) -> ModuleType:
    """A test module or conftest of another folder."""
    spec = importlib.util.spec_from_file_location(f"on_arm_{Path(path).stem}", TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where inspect looks it up
    spec.loader.exec_module(made)
    return made


run, bound = (getattr(module("agent/conftest.py"), name) for name in ("run", "bound"))


def taken_over(path: str) -> dict[str, Any]:
    """The tests of a module that reach the agent by requests alone."""
    found = {}
    for name, test in inspect.getmembers(module(path), inspect.isfunction):
        if not name.startswith("test_"):
            continue
        marks = getattr(test, "pytestmark", [])
        given = {word for mark in marks if mark.name == "parametrize" for word in _words(mark.args[0])}
        fixtures = set(inspect.signature(test).parameters) - given
        text = inspect.getsource(test).partition("\ndef ")[2] or inspect.getsource(test)  # without its marks
        apart = "__closure__" in text or hasattr(test, "hypothesis") or ("child" in text and not FULL)
        if fixtures and fixtures <= {"agent", "run", "bound"} and not apart:
            found[name] = test
    return found


def _words(names: Any) -> list[str]:
    return names.replace(",", " ").split() if isinstance(names, str) else list(names)


for _name in ("calls", "control", "cpu", "programs", "timing", *(["children"] if FULL else [])):
    _tests = taken_over(f"agent/test_agent_{_name}.py")
    assert len(_tests) >= 3
    assert not set(_tests) & set(globals())
    globals().update(_tests)


LAYOUTS = """
import ctypes, importlib, json, sys
sys.path.insert(0, sys.argv[1])
structures = importlib.import_module("agent.structures")
bits = structures.native_pointer_bits()
found = {}
layouts = structures.layouts(bits, bits)
for name in json.loads(sys.argv[2]):
    made = layouts[name]
    places = [(field, getattr(made, field)) for field, *_ in made._fields_]
    found[name] = {field: [place.offset, place.size] for field, place in places}
    found[name]["(total)"] = [0, ctypes.sizeof(made)]
print([bits, found])
"""


def test_structures_lie_as_the_compiler_lays_them(python: ArmPython, tmp_path: Path) -> None:
    """As Python itself there lays them, without a word about widths."""
    rows = module("agent/test_agent_abi.py").rows(TABLES[python.architecture])
    expected: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        place = [int(row["offset"]), int(row["size"])]
        expected.setdefault(row["struct"], {})[row["field"]] = place
    (tmp_path / "agent").mkdir()
    for name, text in {**sources(), "__init__": ""}.items():
        (tmp_path / "agent" / f"{name}.py").write_text(text)
    command = [*python.command, "-B", "-c", LAYOUTS, str(tmp_path), json.dumps(list(expected))]
    bits, found = ast.literal_eval(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert bits == {"arm64": 64, "armhf": 32}[python.architecture]
    assert found == expected


@pytest.mark.parametrize("python", ["arm64", *(["armhf"] if FULL else [])], indirect=True)
def test_a_session_gives_what_it_gives_on_this_host(
    python: ArmPython, arm_runtime: str, fake_runtime: str, tmp_path: Path
) -> None:
    """From connecting to the values of a program, with everything that is shipped in between."""
    answers = []
    for where, library in ((python.python, arm_runtime), (sys.executable, fake_runtime)):
        keys = {"name": "desk", "soc": "rk3588", "runtime": "librknnrt", "transport": "local"}
        keys |= {"library": library, "model_cache": str(tmp_path / "models")}
        board = Board.model_validate({**keys, "python": str(where)})
        with ExitStack() as resources:
            session = connect(board, seed=1, resources=resources)
            program = Program()
            program.init("a", session.store_model(MODEL))
            program.create_mem("m", "a", 256)
            program.write("m", bytes(range(256)))
            program.digest("m", "digest")
            program.compare("m", bytes(256), save="difference")
            values = session.execute(program, deadline_s=120)["values"]
            assert session.facts["runtime_library"]["value"]["path"] == library
            answers.append((values, session.functions))
    on_arm, here = answers
    assert on_arm == here

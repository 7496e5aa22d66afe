"""Prints what one small command on a board costs: over our session, and over labgrid's SSHDriver.run.

    python benchmarks/command_over_ssh.py [--count N]

The board is an sshd of this host. Both read 256 bytes that lie on it: ours from memory of a (fake) runtime,
labgrid's from a file with cat. Rounds of both take turns, so that neither has the quieter machine. Needs sshd
(openssh-server), gcc and labgrid.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from loopback_sshd import running_sshd  # noqa: E402

from pytest_rknpu.inventory.schema import Board  # noqa: E402
from pytest_rknpu.session import Program  # noqa: E402
from pytest_rknpu.session.board_session import connect  # noqa: E402
from pytest_rknpu.transport.labgrid import labgrid_python  # noqa: E402

CONTENT = bytes(range(256))
ROUNDS = 5

# In labgrid's Python: a target with the board, and for each line on stdin a line of JSON with seconds.
DRIVER = """
import json, os, sys, time
from labgrid import Target
from labgrid.driver import SSHDriver
from labgrid.resource import NetworkService
port, key, path, user = sys.argv[1:]
target = Target("board")
NetworkService(target, name=None, address="127.0.0.1", username=user, port=int(port))
driver = SSHDriver(target, name=None, keyfile=key)
target.activate(driver)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        begin = time.perf_counter()
        out, _, code = driver.run("cat " + path)
        times.append(time.perf_counter() - begin)
        assert code == 0
    print(json.dumps(times), flush=True)
"""


def ours(config: Path, library: str, stack: ExitStack) -> Callable[[int], list[float]]:
    """A function that reads so many times over our session; seconds each."""
    board = Board(
        name="desk",
        soc="rk3588",
        runtime="librknnrt",
        transport="ssh",
        host="desk-board",
        ssh_config=str(config),
        python=sys.executable,
        library=library,
    )
    session = connect(board, seed=1, resources=stack)
    prepare = Program()
    prepare.init("a", session.store_model(b"FAKE model"))
    prepare.create_mem("m", "a", len(CONTENT))
    prepare.write("m", CONTENT)
    session.execute(prepare)
    read = Program()
    read.read("m", "read", length=len(CONTENT))

    def times(count: int) -> list[float]:
        measured = []
        for _ in range(count):
            begin = time.perf_counter()
            reply = session.execute(read)
            measured.append(time.perf_counter() - begin)
            assert reply["values"]["read"] == CONTENT
        return measured

    return times


def labgrids(port: int, folder: Path, stack: ExitStack) -> Callable[[int], list[float]]:
    """The same over SSHDriver."""
    import getpass

    (folder / "content").write_bytes(CONTENT.hex().encode())  # run() wants text
    arguments = [str(port), str(folder / "user"), str(folder / "content"), getpass.getuser()]
    command = [labgrid_python(), "-c", DRIVER, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(process.communicate)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def times(count: int) -> list[float]:
        print(count, file=stdin, flush=True)
        measured: list[float] = json.loads(stdout.readline())
        return measured

    return times


def shown(name: str, seconds: list[float]) -> str:
    """Median and spread in milliseconds."""
    low, *_, high = statistics.quantiles(seconds, n=20)
    return (
        f"{name:28} median {statistics.median(seconds) * 1e3:9.3f} ms   5 % {low * 1e3:9.3f}   "
        f"95 % {high * 1e3:9.3f}   ({len(seconds)} calls)"
    )


def main() -> None:
    """Start a board, measure both, print them and how many times one is faster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="calls of labgrid's in each of five rounds")
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        library = str(folder / "librknnrt.so")
        source = TESTS / "agent" / "fake_runtime.c"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, str(source)], check=True)
        sshd = stack.enter_context(running_sshd(folder))
        us, them = ours(sshd.config, library, stack), labgrids(sshd.port, folder, stack)
        us(count), them(2)
        mine: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            mine += us(count * 20)
            theirs += them(count)
    print(shown("our session", mine))
    print(shown("labgrid's SSHDriver.run", theirs))
    print(f"ratio of the medians: {statistics.median(theirs) / statistics.median(mine):.0f}")


if __name__ == "__main__":
    main()

"""Clocks are pinned, read back, and put back on every way out, also those that leave nobody to do it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agent.fake_sysfs import BEFORE, CPU, DDR, NPU, PINNED, FakeSysfs

from pytest_rknpu.agent import guardian, sources
from pytest_rknpu.agent.failures import ClockFailure
from pytest_rknpu.agent.log_capture import LogCapture
from pytest_rknpu.agent.pinning import Pinned
from pytest_rknpu.agent.serve import Agent

Ask = Callable[..., dict[str, Any]]
WISH = {"npu_hertz": 1_000_000_000, "ddr_hertz": 2_112_000_000, "cpu_hertz": {"policy0": 1_800_000_000}}
PATIENCE_S = 20.0
PLAN = f"run/{guardian.FILE}"


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process to do something."""
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        os.sched_yield()


@pytest.fixture
def sysfs(tmp_path: Path) -> FakeSysfs:
    return FakeSysfs(tmp_path / "root")


@pytest.fixture
def pinned(sysfs: FakeSysfs) -> Iterator[Pinned]:
    clocks = Pinned(str(sysfs.root), sources()["guardian"])
    yield clocks
    clocks.unpin()


def pin(clocks: Pinned, deadline_s: float = 60.0, **changes: Any) -> dict[str, Any]:
    return {
        clock["clock"]: clock for clock in clocks.pin(**{**WISH, **changes}, deadline_s=deadline_s)["clocks"]
    }


def test_all_clocks_are_pinned_and_put_back(sysfs: FakeSysfs, pinned: Pinned) -> None:
    told = pin(pinned)
    assert {name: (clock["pinned"], clock["hertz"]) for name, clock in told.items()} == {
        "npu": (True, 1_000_000_000),  # not the 1.1 GHz that the table does not know
        "ddr": (True, 2_112_000_000),
        "cpu policy0": (True, 1_800_000_000),
    }
    assert told["npu"]["before"] == {"governor": "rknpu_ondemand", "hertz": 300_000_000}
    assert sysfs.governors() == PINNED
    assert sysfs.get(f"{CPU}/scaling_setspeed") == "1800000"
    assert (sysfs.root / PLAN).exists()
    report = pinned.unpin()
    assert report["why"] == "the agent asked for it"
    assert [step["error"] for step in report["restored"]] == [None] * 3
    assert sysfs.governors() == BEFORE
    assert not (sysfs.root / PLAN).exists()
    assert pinned.unpin()["why"] == "nothing was pinned"


def test_a_clock_that_was_set_by_hand_gets_its_frequency_back(sysfs: FakeSysfs, pinned: Pinned) -> None:
    sysfs.set(f"{NPU}/governor", "userspace\n")
    sysfs.set(f"{NPU}/userspace/set_freq", "900000000\n")
    pin(pinned)
    assert sysfs.get(f"{NPU}/cur_freq") == "1000000000"
    pinned.unpin()
    assert (sysfs.get(f"{NPU}/governor"), sysfs.get(f"{NPU}/cur_freq")) == ("userspace", "900000000")


def test_without_a_wish_the_highest_frequency(sysfs: FakeSysfs, pinned: Pinned) -> None:
    assert pin(pinned, npu_hertz=None)["npu"]["hertz"] == 1_100_000_000


def test_a_board_without_npu_clock_and_ddr_clock(sysfs: FakeSysfs, pinned: Pinned) -> None:
    for folder in (NPU, DDR):
        (sysfs.root / folder).rename(sysfs.root / (folder + "-was"))
    (sysfs.root / (NPU + "-was")).rename(sysfs.root / "elsewhere")
    told = pin(pinned)
    assert not told["npu"]["pinned"]
    assert "no node of /sys/class/devfreq belongs to the NPU" in told["npu"]["reason"]
    assert "there is no /sys/class/devfreq/dmc" in told["ddr"]["reason"]
    assert told["cpu policy0"]["pinned"]


def test_a_kernel_without_userspace_governor(sysfs: FakeSysfs, pinned: Pinned) -> None:
    sysfs.set(f"{DDR}/available_governors", "dmc_ondemand\n")
    sysfs.set(f"{CPU}/scaling_available_governors", "schedutil performance\n")
    sysfs.set(f"{CPU}/scaling_setspeed", "1800000\n")  # where the governor goes to
    told = pin(pinned)
    assert (
        told["ddr"]["reason"] == "/sys/class/devfreq/dmc/available_governors has no userspace: dmc_ondemand"
    )
    assert (told["cpu policy0"]["pinned"], told["cpu policy0"]["governor"]) == (True, "performance")
    assert sysfs.governors() == ["userspace", "dmc_ondemand", "performance"]
    pinned.unpin()
    assert sysfs.governors() == BEFORE


def test_a_clock_that_does_not_follow_is_told_and_put_back_at_once(
    sysfs: FakeSysfs, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_rknpu.agent.pinning.SETTLE_S", 0.05)
    (sysfs.root / NPU / "cur_freq").unlink()
    sysfs.set(f"{NPU}/cur_freq", "700000000\n")  # limited by something else
    told = pin(pinned)["npu"]
    assert not told["pinned"]
    assert told["reason"] == "reads back userspace at 700000000 Hz, not userspace at 1000000000 Hz"
    assert sysfs.governors() == ["rknpu_ondemand", "userspace", "userspace"]


def test_no_permission_is_told_with_the_file(
    sysfs: FakeSysfs, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = guardian.write

    def refuse(path: str, value: str) -> None:
        if path.endswith(f"{DDR}/governor") and value == "userspace":
            raise PermissionError(13, "Permission denied")
        write(path, value)

    monkeypatch.setattr(guardian, "write", refuse)
    told = pin(pinned)["ddr"]
    assert told["reason"] == (
        "/sys/class/devfreq/dmc/governor: Permission denied; run as root or give this user the right"
    )
    assert sysfs.governors() == ["userspace", "dmc_ondemand", "userspace"]
    restored = pinned.unpin()["restored"]
    assert [step["path"] for step in restored] == [f"/{NPU}/governor", f"/{CPU}/scaling_governor"]


def busy(path: str, value: str, times: int) -> Callable[[str, str], None]:
    """``guardian.write`` for a file that refuses a value so many times."""
    write, left = guardian.write, [times]

    def refuse(file: str, text: str) -> None:
        if file.endswith(path) and text == value and left[0]:
            left[0] -= 1
            raise OSError(16, "Device or resource busy")
        write(file, text)

    return refuse


def limit_npu(sysfs: FakeSysfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The NPU's clock does not follow: it takes the governor, and then has to be put back."""
    monkeypatch.setattr("pytest_rknpu.agent.pinning.SETTLE_S", 0.02)
    (sysfs.root / NPU / "cur_freq").unlink()
    sysfs.set(f"{NPU}/cur_freq", "700000000\n")


def test_what_is_busy_for_a_moment_is_put_back_all_the_same(
    sysfs: FakeSysfs, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_npu(sysfs, monkeypatch)
    monkeypatch.setattr(guardian, "write", busy(f"{NPU}/governor", "rknpu_ondemand", 2))
    told = pin(pinned)["npu"]
    assert told["reason"] == "reads back userspace at 700000000 Hz, not userspace at 1000000000 Hz"
    assert sysfs.governors() == ["rknpu_ondemand", "userspace", "userspace"]


def test_what_could_not_be_put_back_at_once_is_put_back_at_the_end(
    sysfs: FakeSysfs, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the clock stayed pinned for good and nobody was told."""
    limit_npu(sysfs, monkeypatch)
    monkeypatch.setattr(guardian, "write", busy(f"{NPU}/governor", "rknpu_ondemand", 99))
    told = pin(pinned)["npu"]
    assert told["reason"].endswith(f"; and it is not as it was: /{NPU}/governor: Device or resource busy")
    report = pinned.unpin()["restored"]  # the guardian is another process: there it works
    assert [step["path"] for step in report if "npu" in step["path"]] == [f"/{NPU}/governor"]
    assert sysfs.governors() == BEFORE


def test_a_governor_that_takes_a_value_and_reads_another_was_not_put_back(
    sysfs: FakeSysfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sysfs.set(f"{NPU}/governor", "userspace\n")
    monkeypatch.setattr(guardian, "write", lambda path, value: None)
    (told,) = guardian.restore(str(sysfs.root), [(f"{NPU}/governor", "rknpu_ondemand")])
    assert told["error"] == "reads back 'userspace'"


def test_what_the_guardian_cannot_put_back_is_left_for_the_next_agent(
    sysfs: FakeSysfs, pinned: Pinned
) -> None:
    """And the state that it is in meanwhile is not taken for the one to go back to."""
    pin(pinned)
    file = sysfs.root / NPU / "governor"
    file.unlink()
    file.mkdir()
    errors = {step["path"]: step["error"] for step in pinned.unpin()["restored"]}
    assert errors[f"/{NPU}/governor"] == "Is a directory"
    assert errors[f"/{DDR}/governor"] is None
    second = Pinned(str(sysfs.root), sources()["guardian"])
    second.pin(**WISH, deadline_s=60.0)  # still not possible; what is owed is kept beside the new plan
    second.unpin()
    file.rmdir()
    sysfs.set(f"{NPU}/governor", "userspace\n")
    assert guardian.recover(str(sysfs.root)) == [
        {"path": f"/{NPU}/governor", "value": "rknpu_ondemand", "error": None}
    ]
    assert sysfs.governors() == BEFORE
    assert not (sysfs.root / PLAN).exists()


def test_two_agents_do_not_pin_a_board_that_has_no_run_folder(sysfs: FakeSysfs, pinned: Pinned) -> None:
    """Else the second takes the pinned state for the one to go back to, and that it stays."""
    (sysfs.root / "run").rmdir()
    pin(pinned)
    with pytest.raises(ClockFailure, match="pinned by another agent"):
        Pinned(str(sysfs.root), sources()["guardian"]).pin(**WISH, deadline_s=60.0)
    pinned.unpin()
    assert sysfs.governors() == BEFORE


def test_an_empty_governor_is_nothing_to_go_back_to(sysfs: FakeSysfs, pinned: Pinned) -> None:
    sysfs.set(f"{NPU}/governor", "\n")
    assert "nobody knows what to go back to" in pin(pinned)["npu"]["reason"]
    assert sysfs.get(f"{NPU}/governor") == ""


@pytest.mark.parametrize(("highest", "set_to"), [("1100000000", 1_000_000_000), ("900000000", 900_000_000)])
def test_a_kernel_that_lists_no_frequencies(
    sysfs: FakeSysfs, pinned: Pinned, highest: str, set_to: int
) -> None:
    (sysfs.root / NPU / "available_frequencies").unlink()
    sysfs.set(f"{NPU}/max_freq", highest)
    assert pin(pinned)["npu"]["hertz"] == set_to
    pinned.unpin()
    sysfs.set(f"{NPU}/max_freq", "")
    assert "lists no frequency" in pin(pinned)["npu"]["reason"]


def test_all_policies_of_the_cpu_are_pinned(sysfs: FakeSysfs, pinned: Pinned) -> None:
    for name in ("scaling_governor", "scaling_available_frequencies", "scaling_setspeed"):
        sysfs.set(f"{CPU.replace('policy0', 'policy4')}/{name}", sysfs.get(f"{CPU}/{name}"))
    (sysfs.root / CPU.replace("policy0", "policy4") / "scaling_cur_freq").symlink_to("scaling_setspeed")
    told = pin(pinned)
    assert told["cpu policy4"]["pinned"]
    assert told["cpu policy4"]["hertz"] == 1_800_000_000  # no wish: its highest
    pinned.unpin()
    assert sysfs.get(f"{CPU.replace('policy0', 'policy4')}/scaling_governor") == "schedutil"


def test_no_guardian_no_pinning(sysfs: FakeSysfs, pinned: Pinned, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        with pytest.raises(ClockFailure, match="no guardian of the clocks can be started: Resource"):
            pin(pinned)
    assert len(os.listdir("/proc/self/fd")) == before
    assert sysfs.governors() == BEFORE
    assert pin(pinned)["npu"]["pinned"]  # nothing is held that would forbid it


def test_nobody_recovers_clocks_of_an_agent_that_lives(sysfs: FakeSysfs, pinned: Pinned) -> None:
    """Its guardian was killed; it will put them back itself, and measures meanwhile."""
    pin(pinned)
    kill_guardian(sysfs)
    assert guardian.recover(str(sysfs.root)) == []
    with pytest.raises(ClockFailure, match="pinned by another agent"):
        Pinned(str(sysfs.root), sources()["guardian"]).pin(**WISH, deadline_s=60.0)
    assert sysfs.governors() == PINNED
    pinned.unpin()
    assert sysfs.governors() == BEFORE


def test_a_plan_is_never_half_written(sysfs: FakeSysfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guardian that is killed while it writes a shorter plan over a longer one leaves one of them."""
    plan = guardian.Plan(str(sysfs.root))
    assert plan.lock()
    long = [(f"{NPU}/governor", "a"), (f"{DDR}/governor", "b")]
    plan.keep(long)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: 1 / 0)
        with suppress(ZeroDivisionError):
            plan.keep(long[:1])
    assert plan.left_behind() == long
    plan.keep(long[:1])
    assert plan.left_behind() == long[:1]
    plan.end([])


def test_two_agents_do_not_pin_one_board(sysfs: FakeSysfs, pinned: Pinned) -> None:
    pin(pinned)
    second = Pinned(str(sysfs.root), sources()["guardian"])
    with pytest.raises(ClockFailure, match="pinned by another agent"):
        second.pin(**WISH, deadline_s=60.0)
    with pytest.raises(ClockFailure, match="pinned already"):
        pin(pinned)
    assert sysfs.governors() == PINNED
    pinned.unpin()
    assert sysfs.governors() == BEFORE
    second.pin(**WISH, deadline_s=60.0)
    second.unpin()
    assert sysfs.governors() == BEFORE


def test_the_deadline_puts_clocks_back(sysfs: FakeSysfs, pinned: Pinned) -> None:
    pin(pinned, deadline_s=0.5)
    until(lambda: sysfs.governors() == BEFORE)
    assert pinned.unpin()["why"] == "the deadline passed, or a signal came"


def guardian_of(sysfs: FakeSysfs) -> int:
    """The number of the guardian's process, by its command line."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(sysfs.root).encode() in words and b"-I" in words:
            return int(entry.parent.name)
    raise AssertionError("no guardian runs")


def kill_guardian(sysfs: FakeSysfs) -> None:
    """It dies some time after the signal was sent, and holds its lock until then. A zombie has no words."""
    words = Path(f"/proc/{guardian_of(sysfs)}/cmdline")
    os.kill(int(words.parent.name), signal.SIGKILL)

    def has_died() -> bool:
        try:
            return not words.read_bytes()
        except OSError:
            return True

    until(has_died)


def test_a_signal_makes_the_guardian_restore(sysfs: FakeSysfs, pinned: Pinned) -> None:
    pin(pinned)
    os.kill(guardian_of(sysfs), signal.SIGTERM)
    until(lambda: sysfs.governors() == BEFORE)
    assert pinned.unpin()["why"] == "the deadline passed, or a signal came"


def test_the_agent_restores_where_the_guardian_was_killed(sysfs: FakeSysfs, pinned: Pinned) -> None:
    pin(pinned)
    kill_guardian(sysfs)
    report = pinned.unpin()
    assert report["why"] == "the guardian of the clocks does not answer"
    assert sysfs.governors() == BEFORE
    assert not (sysfs.root / PLAN).exists()


AGENT = """
import json, os, sys
from pytest_rknpu.agent import sources
from pytest_rknpu.agent.pinning import Pinned
clocks = Pinned(sys.argv[1], sources()["guardian"])
clocks.pin(**json.loads(sys.argv[2]), deadline_s=60.0)
print("pinned", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_agent(sysfs: FakeSysfs) -> Iterator[subprocess.Popen[str]]:
    """A process that has pinned the clocks and now waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(sysfs.root), json.dumps(WISH)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "pinned\n"
    assert sysfs.governors() == PINNED
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_agent_leaves_nothing_pinned(
    sysfs: FakeSysfs, other_agent: subprocess.Popen[str], number: signal.Signals
) -> None:
    other_agent.send_signal(number)
    until(lambda: sysfs.governors() == BEFORE)
    until(lambda: not (sysfs.root / PLAN).exists())


def test_killing_its_whole_process_group_leaves_nothing_pinned(
    sysfs: FakeSysfs, other_agent: subprocess.Popen[str]
) -> None:
    os.killpg(other_agent.pid, signal.SIGKILL)
    until(lambda: sysfs.governors() == BEFORE)


def test_where_both_were_killed_the_next_agent_restores(
    sysfs: FakeSysfs, other_agent: subprocess.Popen[str], library: dict[str, Any], tmp_path: Path
) -> None:
    kill_guardian(sysfs)
    other_agent.kill()
    other_agent.wait()
    assert sysfs.governors() == PINNED
    agent = Agent(LogCapture(), sources)
    keys = {"library": library, "root": str(sysfs.root), "model_cache": str(tmp_path)}
    reply = agent.handle({"request": "start", **keys})
    assert [step["path"] for step in reply["clocks_recovered"]] == [
        f"/{NPU}/governor",
        f"/{DDR}/governor",
        f"/{CPU}/scaling_governor",
    ]
    assert sysfs.governors() == BEFORE
    assert agent.handle({"request": "start", **keys})["clocks_recovered"] == []


KILLED = """
import os, signal, sys
from pytest_rknpu.agent import guardian
plan = guardian.Plan(sys.argv[1])
assert plan.lock()
plan.keep([(sys.argv[2], "performance")])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_where_both_were_killed_on_a_board_without_a_run_folder(sysfs: FakeSysfs) -> None:
    (sysfs.root / "run").rmdir()
    (sysfs.root / "tmp").mkdir()
    governor = f"{NPU}/governor"
    subprocess.run([sys.executable, "-c", KILLED, str(sysfs.root), governor], check=False)
    (sysfs.root / "run").mkdir()  # a new plan would go there
    assert [step["error"] for step in guardian.recover(str(sysfs.root))] == [None]
    assert sysfs.get(governor) == "performance"
    assert not list(sysfs.root.glob(f"*/{guardian.FILE}"))


BOOT = "proc/sys/kernel/random/boot_id"


@pytest.mark.parametrize(("now", "acted"), [("first", True), ("second", False)])
def test_a_plan_is_for_the_run_of_the_kernel_that_it_was_made_in(
    sysfs: FakeSysfs, now: str, acted: bool
) -> None:
    """A restart resets the clocks; what they are then is nobody's to change. Not every image empties /run."""
    sysfs.set(BOOT, now)
    told = {"boot": "first", "restore": [[f"{NPU}/governor", "powersave"]]}
    sysfs.set(PLAN, json.dumps(told))
    assert bool(guardian.recover(str(sysfs.root))) == acted
    assert sysfs.get(f"{NPU}/governor") == ("powersave" if acted else "rknpu_ondemand")
    assert not (sysfs.root / PLAN).exists()


def test_a_plan_for_anything_but_clocks_is_nothing_to_act_on(sysfs: FakeSysfs, tmp_path: Path) -> None:
    """The agent may be root, and who wrote the file is not known for sure."""
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    for path in (str(victim), f"sys/class/devfreq/../../../../{victim.name}", "sys/power/state"):
        sysfs.set(PLAN, json.dumps({"boot": None, "restore": [[path, "x"]]}))
        assert guardian.recover(str(sysfs.root)) == []
    assert victim.read_text() == "as it was"


def test_a_plan_of_another_user_is_nothing_to_act_on(
    sysfs: FakeSysfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sysfs.set(PLAN, json.dumps({"boot": None, "restore": [[f"{NPU}/governor", "powersave"]]}))
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert guardian.recover(str(sysfs.root)) == []
    assert sysfs.get(f"{NPU}/governor") == "rknpu_ondemand"


def test_pinning_again_restores_first_what_was_left(
    sysfs: FakeSysfs, other_agent: subprocess.Popen[str], pinned: Pinned
) -> None:
    """Else the pinned state would be taken for the one to put back."""
    kill_guardian(sysfs)
    other_agent.kill()
    other_agent.wait()
    assert pin(pinned)["npu"]["before"]["governor"] == "rknpu_ondemand"
    pinned.unpin()
    assert sysfs.governors() == BEFORE


def test_an_agent_on_a_board(shipped: Ask, library: dict[str, Any], sysfs: FakeSysfs, tmp_path: Path) -> None:
    """Over execnet, as a session does it: conditions, pinning, and the end of the link."""
    assert shipped("pin_clocks")["error"]["kind"] == "program"  # not started
    assert shipped("start", library=library, root=str(sysfs.root), model_cache=str(tmp_path))["ok"]
    reply = shipped("pin_clocks", **WISH)
    assert reply["ok"], reply
    assert reply["recovered"] == []
    facts = shipped("conditions")["conditions"]
    assert facts["npu_clock"]["value"]["hertz"] == 1_000_000_000
    assert facts["npu_clock"]["value"]["transitions"] == 12
    assert facts["cpu_clocks"]["value"]["policy0"]["transitions"] == 34
    assert facts["thermal"]["value"][0]["trips"] == [{"type": "passive", "millidegrees": 75000}]
    assert facts["cooling"]["value"] == [
        {"device": "cooling_device0", "type": "thermal-devfreq-0", "state": 0, "maximum": 5, "transitions": 1}
    ]
    assert facts["load"]["value"] == {"minutes_1": 0.52, "minutes_5": 0.58, "minutes_15": 0.59}
    assert facts["npu_load"]["value"] == [3, 0, 0]
    times = facts["cpu_time"]["value"]
    assert times["busy"] == (100 + 20 + 50 + 6 + 7) / os.sysconf("SC_CLK_TCK")
    assert times["own"] > 0
    assert shipped("pin_clocks")["error"]["kind"] == "clocks"
    assert shipped("unpin_clocks")["why"] == "the agent asked for it"
    assert sysfs.governors() == BEFORE
    assert shipped("pin_clocks", **WISH)["ok"]
    assert shipped("stop")["ok"]
    until(lambda: sysfs.governors() == BEFORE)


def test_malformed_wishes(library: dict[str, Any], sysfs: FakeSysfs, tmp_path: Path) -> None:
    agent = Agent(LogCapture(), sources)
    assert agent.handle(
        {"request": "start", "library": library, "root": str(sysfs.root), "model_cache": str(tmp_path)}
    )["ok"]
    for keys in (
        {"npu_hertz": -1},
        {"cpu_hertz": [1]},
        {"cpu_hertz": {"policy0": "fast"}},
        {"deadline_s": 0},
    ):
        assert agent.handle({"request": "pin_clocks", **keys})["error"]["kind"] == "program"
    assert sysfs.governors() == BEFORE


def test_a_plan_that_makes_no_sense_is_ignored(sysfs: FakeSysfs) -> None:
    for text in ("", "no json", '{"restore": 3}', '{"other": []}'):
        sysfs.set(PLAN, text)
        assert guardian.recover(str(sysfs.root)) == []
        assert not (sysfs.root / PLAN).exists()

"""The command that switches a board: run as it is written, in bounded time, and without telling what it was
given.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.farm.power import CommandPower, PowerFailure, blotted, by_command
from pytest_rknpu.inventory.power_table import PowerTable


def switch(*command: str, limit_s: float = 30.0) -> CommandPower:
    return by_command("desk", PowerTable(cycle=command, limit_s=limit_s))


def python(source: str, *arguments: str, limit_s: float = 30.0) -> CommandPower:
    return switch(sys.executable, "-c", source, *arguments, limit_s=limit_s)


def failure(power: CommandPower) -> str:
    with pytest.raises(PowerFailure) as caught:
        power.cycle()
    return str(caught.value)


def test_arguments_arrive_as_they_are_written(tmp_path: Path) -> None:
    words = ["$HOME", "a b", "`id`", "; false", "*", ""]
    python(f"import sys; open({str(tmp_path / 'got')!r}, 'w').write(repr(sys.argv[1:]))", *words).cycle()
    assert (tmp_path / "got").read_text() == repr(words)


def test_nobody_is_asked_for_anything() -> None:
    python("import sys; assert sys.stdin.read() == ''").cycle()


def test_what_a_failing_command_said_is_told_without_its_arguments() -> None:
    source = "import sys; print('no hub at', *sys.argv[1:]); print('gave up', file=sys.stderr); sys.exit(3)"
    said = failure(python(source, "1-1", "--password=hunter2secret", "admin:hunter2secret@pdu"))
    assert said.startswith("board desk: power not cycled: the command python")
    assert "ended with exit code 3; it said:\n  no hub at 1-1 " in said
    assert "  gave up" in said
    assert "hunter2" not in said
    assert "[argument 4]" in said


def test_secrets_of_the_environment_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDU_TOKEN", "topsecret")
    assert "[$PDU_TOKEN]" in failure(python("import os, sys; sys.exit(os.environ['PDU_TOKEN'])"))


def test_a_silent_failure_says_so() -> None:
    assert failure(python("raise SystemExit(1)")).endswith("ended with exit code 1; it said nothing")


def test_a_program_that_is_not_there() -> None:
    said = failure(switch("/nowhere/uhubctl", "secretsecret"))
    assert said == "board desk: power not cycled: the command uhubctl: No such file or directory"


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    source = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "print('switching', flush=True); time.sleep(100)"
    )
    said = failure(python(source, limit_s=2))
    assert "did not end within 2 s; it said:\n  switching" in said
    child = (tmp_path / "child").read_text()
    ends = time.monotonic() + 10
    while os.path.exists(f"/proc/{child}") and "State:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_much_output_is_cut() -> None:
    said = failure(python("import sys\nfor n in range(100000): print('line', n)\nsys.exit(1)"))
    assert "  line 99999" in said
    assert len(said.splitlines()) == 21


def test_nothing_shows_the_command() -> None:
    power = switch("uhubctl", "secretsecret")
    assert str(power) == "the command uhubctl"
    assert "secretsecret" not in repr(power)


@given(
    secret=st.text("sécret;$(0)\n =:", min_size=4, max_size=20),
    before=st.text("abxyz", max_size=20),
    after=st.text("abxyz", max_size=20),
    form=st.sampled_from(["{}", "--password={}", "user:{}@host", "-p {}"]),
)
def test_no_argument_is_told(secret: str, before: str, after: str, form: str) -> None:
    command = ["switch", form.format(secret)]
    told = blotted(f"{before}|{command[1]}|{after}", command, {})
    assert told == f"{before}|[argument 1]|{after}"


def test_what_stands_for_a_secret_is_not_blotted_again() -> None:
    assert blotted("argument and ment", ["switch", "argument", "ment"], {}) == "[argument 1] and [argument 2]"


def test_ctrl_c_does_not_leave_a_board_without_power(tmp_path: Path) -> None:
    done = tmp_path / "done"
    power = python(f"import time; time.sleep(1); open({str(done)!r}, 'w')")

    def ring(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            power.cycle()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert done.exists()

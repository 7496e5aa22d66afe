"""What a lost board leaves behind, as lines below the message of its loss: logs, and what was found
afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_rknpu.session.kernel_log import new_messages

if TYPE_CHECKING:
    from pytest_rknpu.session.board_session import BoardSession

_LAST_LINES = 20
_LONGEST_LINE = 400

_STATES: Mapping[str, str] = {
    "T": "stopped",
    "t": "stopped by a debugger",
    "D": "asleep within the kernel",
    "Z": "dead",
    "R": "running",
    "S": "asleep",
}


def attached(title: str, text: str | Sequence[str], most: int = _LAST_LINES) -> str:
    """The last lines of a log under its title, to follow a message; empty where there are none."""
    lines = text.splitlines() if isinstance(text, str) else list(text)
    lines = [line.rstrip()[:_LONGEST_LINE] for line in lines if line.strip()]
    if not lines:
        return ""
    shown = lines[-most:]
    left_out = f", the last {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else ""
    return "\n".join([f"\n{title}{left_out}:", *(f"  {line}" for line in shown)])


def kernel_log(fact: Mapping[str, Any] | None) -> str:
    """The kernel's last messages, or why nobody can read them; ``fact`` as the agent's probe has it."""
    if fact is None:
        return ""
    if "value" in fact:
        return attached("kernel log", fact["value"])
    return f"\nkernel log: not readable ({fact.get('absent') or fact.get('blocked')})"


def found_afterwards(lost: BoardSession, opened: BoardSession) -> str:
    """What a session that was ``opened`` after another was ``lost`` finds of that, as lines and logs."""
    lines = []
    if restarted(lost, opened):
        lines.append("the board rebooted in between")
    left = opened.predecessor
    if left is not None and left["fate"] != "gone":
        lines.append(_fate(left))
    text = "".join(f"\nafterwards: {line}" for line in lines)
    if left is not None:
        text += attached("runtime log", left["log"])
    return text + _new_kernel_messages(lost, opened)


def restarted(lost: object, opened: object) -> bool | None:
    """Whether the board was started anew between two sessions, by the kernel's boot_id; None: nobody can
    tell.
    """
    before, after = getattr(lost, "boot_id", None), getattr(opened, "boot_id", None)
    return None if before is None or after is None else before != after


def _fate(left: Mapping[str, Any]) -> str:
    state = _STATES.get(left["state"] or "", f"in state {left['state']}")
    where = f" in {left['waits_in']}" if left["waits_in"] not in (None, "0") else ""
    if left["fate"] == "ended":
        return f"its agent was still there ({state}{where}) and was ended"
    return f"its agent is still there ({state}{where}) and cannot be ended: only a restart frees the NPU"


def _new_kernel_messages(lost: BoardSession, opened: BoardSession) -> str:
    """What the kernel said about the NPU since ``lost`` began; after a restart, all that it said since."""
    after = opened.facts.get("npu_kernel_log", {}).get("value", [])
    before = [] if restarted(lost, opened) else lost.facts.get("npu_kernel_log", {}).get("value", [])
    return attached("kernel log", [str(message["text"]) for message in new_messages(before, after)])

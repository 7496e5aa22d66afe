"""The kinds of text that boards.toml may hold.

Words that reach an argument vector (of ssh, python or adb): no blank, no quote, nothing that a shell expands,
no leading dash (ssh takes that for an option), no `//` (execnet's separator).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=64)]
HostName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9:][A-Za-z0-9_.:%-]*$", max_length=255)]
UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=64)]
JumpHost = Annotated[
    str,
    StringConstraints(
        pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9][A-Za-z0-9_.-]*|\[[A-Fa-f0-9:.]+(%[A-Za-z0-9_.-]+)?\])"
        r"(:[0-9]{1,5})?$",
        max_length=300,
    ),
]
Command = Annotated[
    str, StringConstraints(pattern=r"^/?[A-Za-z0-9_.][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*$", max_length=4096)
]
DeviceId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length=128)]
File = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f-][^\x00-\x1f]*$", max_length=4096)]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$", max_length=2000)]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+([a-z][0-9]+)?$", max_length=32)]
# As labgrid has tags, so that one word serves both (labgrid/remote/common.py, TAG_KEY).
TagKey = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]+$", max_length=64)]
TagValue = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]+$", max_length=64)]
PlaceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:+/-]*$", max_length=64)]
Address = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9\[][A-Za-z0-9.:%\[\]-]*$", max_length=255)]

"""The line that Python on a board runs first, whichever way it was started.

It refuses a Python that cannot run the agent, in words that `diagnosis` knows, makes a terminal transparent
where the way to the board is one, and says `READY`: from there on the stream is the link's alone. What comes
before is somebody else's, such as the greeting of a login shell.
"""

from __future__ import annotations

import shlex

OLDEST_PYTHON = (3, 8)
READY = b"pytest-rknpu:ready;"
TOO_OLD = "pytest-rknpu: this is Python "

# What the agent imports of the standard library, which distributions cut into packages, or cut down.
MODULES = (
    "collections contextlib ctypes dataclasses enum errno faulthandler fcntl fnmatch functools gc hashlib "
    "importlib json linecache marshal math mmap operator platform queue re select signal socket stat struct "
    "subprocess tempfile threading time traceback types typing"
)

# No start folder: a json.py in somebody's home is not the standard library's.
_CHECKS = (
    "import sys,os",
    f'sys.version_info<{OLDEST_PYTHON}and sys.exit("{TOO_OLD}"+sys.version.split()[0])',
    'sys.path[:1]==[""]and sys.path.pop(0)',
    f'[__import__(m)for m in"{MODULES}".split()]',
)
# The two halves are joined there, so that a shell that traces its commands does not say it.
_READY = f'os.write(1,b"{READY[:7].decode()}"+b"{READY[7:].decode()}")'
_HAND_OVER = "exec(eval(sys.stdin.readline()))"
# A terminal in between is to change no byte, and stderr then arrives on the same way: silence it.
_SILENCE = "os.dup2(os.open(os.devnull,os.O_WRONLY),2)"
_TRANSPARENT = f'os.isatty(0)and(__import__("tty").setraw(0),{_SILENCE})'


def source(*, one_stream: bool = False) -> str:
    """The text for ``python -c``: no single quote, no backslash, nothing that any shell would expand.

    ``one_stream``: what is written to stderr there arrives in the link's own stream, terminal or not.
    """
    return ";".join((*_CHECKS, _TRANSPARENT, *((_SILENCE,) if one_stream else ()), _READY, _HAND_OVER))


def shell_command(python: str, *, before: tuple[str, ...] = (), one_stream: bool = False) -> str:
    """The shell's command that starts ``python`` on a board, with words ``before`` it."""
    return shlex.join([*before, python, "-c", source(one_stream=one_stream)])

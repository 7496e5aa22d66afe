"""The main function of a child process: open the library, run the list, answer, leave without destructors."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import mmap
import os
import signal
from typing import Any

from . import lite
from .binding import bind
from .children import pack_reply
from .compiler import Services
from .executor import execute
from .failures import InternalFailure, MappingFailure, as_failure
from .library import open_library
from .log_capture import unbuffer_standard_output
from .state import Memory, State, inherited
from .store import ModelStore

_PR_SET_PDEATHSIG = 1
_mappings: list[mmap.mmap] = []


def main(load: dict[str, Any]) -> None:
    """Run the request of ``load`` and write the reply to the descriptor that it names."""
    _die_with(load["parent"])
    unbuffer_standard_output()
    faulthandler.enable()  # a crash then says in the log which step it was
    reply = _run(load["request"])
    data = memoryview(pack_reply(reply))
    while data:
        data = data[os.write(load["result"], data) :]
    # Destructors of a library that was ill-treated on purpose may crash; the result is out, so leave now.
    os._exit(0)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent dies: a killed agent leaves no child behind."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew
        os._exit(1)


def _run(request: dict[str, Any]) -> dict[str, Any]:
    if "lite" in request:
        return lite.work(request["lite"])
    try:
        binding = bind(open_library(request["library"]))
        services = Services(ModelStore(request["model_cache"]), _no_children, lambda: None, request["root"])
        program = {"commands": request["commands"], "blobs": request["blobs"]}
        handed = {name: _mapped(name, *known) for name, known in request["handed"].items()}
        return execute(program, State(binding, handed), services, in_child=True)
    except Exception as error:
        return {"ok": False, "error": as_failure(error).as_reply(), "values": {}, "duration_ns": 0}


def _mapped(name: str, fd: int, size: int) -> Memory:
    """The parent's memory in this process."""
    try:
        if fd < 0:  # mmap would give fresh memory
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        mapping = mmap.mmap(fd, size)
    except (OSError, ValueError) as error:
        raise MappingFailure(
            f"{size} bytes of memory {name!r} (descriptor {fd}) cannot be mapped in a second process: {error}"
        ) from error
    _mappings.append(mapping)  # it would be unmapped with the object
    return inherited(name, fd, ctypes.addressof(ctypes.c_char.from_buffer(mapping)), size)


def _no_children(*_: Any) -> dict[str, Any]:
    raise InternalFailure("a child cannot start another child")  # the compiler refuses it before

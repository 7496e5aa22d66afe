"""Serve one request, then end."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
import traceback

from pytest_rknpu.keeper.coordinator import Coordinator
from pytest_rknpu.keeper.keeping import Keeping
from pytest_rknpu.keeper.messages import Disconnected, Lost, Refused, Released, Wanted, say
from pytest_rknpu.keeper.parent import Inbox, listen

# A link that was cut by a kill takes its agent along, but not at once.
_AGENT_ENDS_SECONDS = 2.0


def keep(wanted: Wanted) -> None:
    """Hold a place until nobody needs it, or it is lost."""
    inbox: Inbox = queue.SimpleQueue()
    listen(inbox)
    coordinator = Coordinator(wanted.address, wanted.identity, inbox)
    keeping = Keeping(coordinator, wanted)
    try:
        coordinator.settle()
        place = keeping.take()
        say("held", place=place, service=keeping.service())
        keeping.hold()
    except Refused as error:
        say("refused", why=error.why, message=str(error))
    except Disconnected as error:
        say("refused", why="coordinator", message=str(error))
    except Lost as error:
        say("lost", message=str(error))
    except Released as released:
        if released.abruptly:
            time.sleep(_AGENT_ENDS_SECONDS)
    keeping.give_back()


def main() -> None:
    """Ends by ``_exit``, since threads of gRPC may wait for a coordinator for ever."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import labgrid.remote.generated  # noqa: F401
    except ImportError as error:
        say("refused", why="labgrid", message=str(error))
        return
    try:
        keep(Wanted(**json.loads(sys.stdin.readline())))
    except Exception as error:
        say("refused", why="broken", message=f"{type(error).__name__}: {error}")
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main()

"""Holds one place of a labgrid coordinator for the process that started this one, and gives it back then.

It runs in the Python that labgrid is installed for. That need not be pytest's own: labgrid and RKNN-Toolkit2
ask for releases of protobuf that exclude each other. So this room uses the standard library, labgrid and gRPC
only, and imports nothing else of the package; `pytest_rknpu.transport.labgrid` starts it.

One line of JSON on stdin says what is wanted (`messages.Wanted`). Each line on stdout is an event:

| event | other keys |
|---|---|
| waiting | ``holders``: who holds what could be had, told once |
| held | ``place``, and the ``service`` by which it is reached: address, username, port, proxy |
| refused | ``why`` (a word of `messages.Refusal`), ``message``; this process ends |
| checked | the answer to a line ``check`` on stdin: the coordinator says that the place is still held |
| lost | ``message``: it is held no longer; this process ends |

When stdin ends, or the parent has gone, the place is given back: labgrid itself lets a place stay acquired
when its client is gone. Should this process be killed too, there is a second line of defence. Each holder
keeps a *sign of life* at the coordinator: a reservation that no place satisfies, which the coordinator lets
expire a minute after it was last asked for. Whoever waits for a place of such a holder frees it when the
sign is missing.
"""

"""A software board: the RKNN runtime library behind real C function pointers, on memory that is not coherent.

`open_library` gives what loading ``librknnrt.so`` gives: addresses of C functions, over C structures of
the board's ABI (64-bit contexts, or 32-bit ones for the mini runtime of RV1103 and RV1106). An agent's
binding cannot tell it from silicon, and a wrong offset or a forgotten sync fails here first. Nothing of it
is a statement about silicon: versions, log lines and probes all say "emulated".

**Memory model** (`memory`). Each memory has a CPU view, which is the mapped bytes that the application
reads and writes, and a device view, which the NPU reads and writes. Lines of 64 bytes are valid (the CPU
holds a copy) and dirty (the CPU wrote it and memory has not got it). rknn_mem_sync joins the views as
Linux on arm64 does:

- TO_DEVICE writes dirty lines back and touches no clean line;
- FROM_DEVICE drops lines, unwritten CPU data too; a line that the range covers only in part is written
  back first;
- BIDIRECTIONAL is the first, then the second.

The CPU's reads and writes cannot be trapped. Writes are found at the next call, by comparing bytes; a
write of equal bytes is not seen. Any line may be in the CPU's cache at any time: after it was dropped it
is taken to be fetched again with high probability. Between the layers of a run, caches replace a few
lines, seeded: dirty ones are written back, over whatever the NPU wrote meanwhile. A program that follows
the guide is right whatever happens; one that does not is wrong with high probability.

**What rknn_run maintains by itself**: bound inputs to the device before, bound outputs from the device
after the run, unless RKNN_FLAG_DISABLE_FLUSH_*_MEM_CACHE forbid it (which runtimes before 2.0 ignore). It
cleans no output and no internal memory: a CPU that wrote there hands over with TO_DEVICE, or its lines may
come back over the result.

**Computation** (`packing`, `engine`). A QDQ ONNX model is cut into layers, each int8 in and int8 out, run
one by one with onnxruntime. Inputs are loaded into the internal buffer, layers read and write there by a
plan with reuse, outputs are stored from there: a buffer that is shared wrongly, too small or overwritten
shows in the results. Weights are read from weight memory at each layer. Layers of contexts that run at
once alternate.

**Faults** (`faults`): a table of ways to be broken, by name, so that the suites can be shown to notice.
**Choices** (`choices`): a table of what no document settles, so that they can be shown not to mind.

Modules: `library` (C functions), `contexts`, `memories`, `binding`, `running`, `copying`, `queries` (what
they do), `state` (what they share), `memory` and `pages`, `forms` (tensor layouts), `container` (the model
file), `packing`, `qdq`, `plan` (host side), `engine`, `npu_queue`, `platform` (options), `hooks`, `faults`
and `choices`, `latency`, `root` (the sysroot for probing), `log`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_rknpu.emulator.faults import FAULTS, Fault
from pytest_rknpu.emulator.root import make_root

if TYPE_CHECKING:
    from pytest_rknpu.emulator.library import Library

__all__ = ["FAULTS", "Fault", "make_root", "open_library", "pack"]


def open_library(options: Mapping[str, Any]) -> Library:
    """Open an emulated runtime library for one board.

    Options: ``soc`` (required; aliases are taken), ``seed`` (int; evictions and faults, default 0),
    ``faults`` (list of "name" or "name:key=value"), ``runtime_version`` and ``driver_version`` (reported
    as "emulated VERSION"). The result has ``symbol(name) -> int | None``, the address of a C function.
    Raises ConfigurationError for anything else.
    """
    from pytest_rknpu.emulator import library

    return library.open_library(options)


def pack(
    qdq_onnx: bytes,
    soc: str,
    version: str | None = None,
    *,
    remove_weight: bool = False,
    custom_string: str = "",
) -> bytes:
    """Pack a QDQ ONNX model for the emulated boards of ``soc``; see `packing.pack`. Needs ``onnx`` (host
    side).
    """
    from pytest_rknpu.emulator import packing

    return packing.pack(qdq_onnx, soc, version, remove_weight=remove_weight, custom_string=custom_string)

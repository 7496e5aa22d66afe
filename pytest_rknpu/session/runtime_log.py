"""What known lines of the vendor runtime's log mean, and what to do: as people who met them found out.

The lines are obscure ("6, 1") or point elsewhere ("need to insmod"); sources stand beside them, as repository
and issue.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LONGEST_LOG = 2**20


@dataclass(frozen=True)
class Saying:
    """``pattern`` finds the line, ``words`` say what it means and what to do; ``fatal``: nothing works."""

    pattern: re.Pattern[str]
    words: str
    source: str
    fatal: bool = False


def _saying(pattern: str, words: str, source: str, *, fatal: bool = False) -> Saying:
    return Saying(re.compile(pattern, re.IGNORECASE), words, source, fatal)


SAYINGS = (
    _saying(
        r"Invalid RKNN model version|Invalid RKNN format",
        "the model's format is newer than this runtime, or the file is damaged: update librknnrt.so, or "
        "compile with the runtime's own version of RKNN-Toolkit2",
        "airockchip/rknn-toolkit2 254 and 281",
        fatal=True,
    ),
    _saying(
        r"failed to open rknpu module|failed to open rknn device",
        "the runtime cannot open the NPU's device node: the rknpu driver is not loaded, or this user (this "
        "container) may not open the node; `insmod` is rarely the remedy",
        "ophub/amlogic-s9xxx-armbian 3123, rockchip-linux/rknn-toolkit 454",
        fatal=True,
    ),
    _saying(
        r"Mismatch driver version.{0,200}requires driver version",
        "the rknpu driver is too old for this runtime: update the kernel, or use the runtime it came with",
        "luckfox-pico 328",
        fatal=True,
    ),
    _saying(
        r"Current driver version:.{0,200}recommend to upgrade",
        "the rknpu driver is older than the runtime likes; it works, but update the kernel when you can",
        "luckfox-pico 328",
    ),
    _saying(
        r"failed to submit!",
        "the driver did not get the job done: with driver 0.9.2 and 0.9.3 on cores 1 and 2 of an RK3588 "
        "that was the driver's fault (0.9.6 mended it); else see the kernel log for a time-out or page fault",
        "radxa/kernel 312, airockchip/rknn-toolkit2 38, rockchip-linux/rknn-toolkit2 320",
    ),
    _saying(
        r"failed to convert handle.{0,80}to fd",
        "the process has run out of file descriptors (errno 24: 1,024 by default): memory is created and not "
        "destroyed, or made with ALLOC_NO_CONTEXT, which leaks one each",
        "airockchip/rknn-toolkit2 532",
    ),
    _saying(
        r"failed to allocate handle",
        "the driver has no memory left for the NPU: destroy what is not used; without IOMMU only a few MiB "
        "of contiguous memory (CMA) are there",
        "PaddlePaddle/FastDeploy 1858, rockchip-linux/rknn-toolkit2 44",
    ),
    _saying(
        r"Not support core mask",
        "this SoC or model does not take that core mask; the runtime went on with another one",
        "airockchip/rknn-toolkit2 7",
    ),
    _saying(
        r"size_with_stride larger than model origin size",
        "rows are padded: memory for zero copy needs size_with_stride bytes, not size",
        "rockchip-linux/rknn-toolkit2 229",
    ),
    _saying(
        r"REGTASK: The bit width of field value exceeds the limit",
        "the compiler made register values that this NPU cannot hold: results are wrong although every call "
        "succeeds; compile with another version of RKNN-Toolkit2",
        "airockchip/rknn-toolkit2 315",
    ),
    _saying(
        r"necessary files are missing in the container",
        "in a container RKNN-Toolkit-Lite2 wants /dev/dri/renderD129, by that number, and "
        "/proc/device-tree/compatible: give it both, whatever number the NPU has",
        "RKNN-Toolkit-Lite2 2.5.0 on a stand-in runtime",
        fatal=True,
    ),
    _saying(
        r"invalid ELF header",
        "the runtime library is no library (a failed download, a Git LFS pointer): copy it again",
        "rockchip-linux/rknn-toolkit2 260",
        fatal=True,
    ),
)
"""Lines that are known, the more general ones last."""

_RUNTIME = re.compile(r"RKNN Runtime Information:? (?:librknn\w{0,8} )?version: ?(\d[^\n]{0,80})")
_DRIVER = re.compile(r"RKNN Driver Information:? version: ?(\d[^\n]{0,40})")


def sayings_in(log: str) -> tuple[Saying, ...]:
    """The known lines that a runtime's log has, each once."""
    text = log[-_LONGEST_LOG:]
    return tuple(saying for saying in SAYINGS if saying.pattern.search(text))


def explanation(log: str) -> str:
    """What the known lines of a log mean, in one line; empty where none is known."""
    return "; ".join(f"{saying.words} (known from {saying.source})" for saying in sayings_in(log))


def versions_in(log: str) -> dict[str, str]:
    """``runtime`` and ``driver`` as rknn_init logs them, also where it fails afterwards; what is not there is
    left out."""
    found = {"runtime": _RUNTIME.search(log), "driver": _DRIVER.search(log)}
    return {name: match[1].strip() for name, match in found.items() if match is not None}

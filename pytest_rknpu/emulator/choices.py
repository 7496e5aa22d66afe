"""What sound boards may do differently, as a table. They are seeded like faults, and turn nothing red.

Where no document says what a board does, a suite must not take this emulator's default for the only right
answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_PAGE_BYTES = 4096


@dataclass(frozen=True)
class Choice:
    """One thing that is left open. ``hooks`` are the fields of `hooks.Hooks` that it sets."""

    name: str
    description: str
    hooks: Mapping[str, object] = field(hash=False)


CHOICES = (
    Choice(
        "sound-fresh-memory-not-zero",
        "New memory holds what was there before",
        {"fresh_byte": 0xB7},
    ),
    Choice(
        "sound-padding-not-zero",
        "The padding of an output holds anything",
        {"padding_byte": 0x6D},
    ),
    Choice(
        "sound-imports-at-pages-only",
        "rknn_create_mem_from_fd takes whole pages as offsets, nothing else",
        {"accepts_import_at": lambda offset: offset % _PAGE_BYTES == 0},
    ),
    Choice(
        "sound-imports-not-maintained",
        "rknn_run leaves the caches of memory made from a descriptor to the application",
        {"run_maintains_imports": False},
    ),
    Choice(
        "sound-needless-sync-refused",
        "rknn_mem_sync of non-cacheable memory gives an error code and an error line (driver 0.9.8)",
        {"syncs_non_cacheable": False},
    ),
    Choice(
        "sound-sizes-need-flag",
        "RKNN_QUERY_MEM_SIZE needs RKNN_FLAG_MEM_ALLOC_OUTSIDE (C API reference; samples go without)",
        {"reports_sizes_without_flag": False},
    ),
    Choice(
        "sound-memory-of-one-context",
        "Memory serves the context that it was made with; others import it (as the samples do)",
        {"memories_serve_all_contexts": False},
    ),
    Choice(
        "sound-pixels-for-images-only",
        "Zero copy takes uint8 pixels for 1, 3 and 4 channels only (guide 1.5.2)",
        {"converts_pixels_for_all_channels": False},
    ),
    Choice(
        "sound-converted-output-not-maintained",
        "rknn_run does not maintain outputs that are not native (seen with 1.5.2 on rk3566)",
        {"run_maintains_converted_outputs": False},
    ),
    Choice(
        "sound-core-mask-falls-back",
        "rknn_set_core_mask takes a core mask that the SoC has not, and the log says so (seen on silicon)",
        {"unknown_core_mask": "named"},
    ),
    Choice(
        "sound-small-internal-refused-by-run",
        "rknn_set_internal_mem takes a buffer that is too small; rknn_run then refuses (seen with 1.5.2)",
        {"internal_fits": lambda given, needed: True, "run_refuses_small_internal": True},
    ),
)
"""Every choice that the emulator knows to make differently."""

"""Non-coherent memory: what the CPU sees and what the NPU sees of one allocation, joined only by cache
maintenance.

**Two views.** `Storage.cpu` are the mapped bytes that a program reads and writes through ``virt_addr``;
they stand for the CPU's caches over DDR. `Storage.device` is DDR as the NPU sees it. Both are divided into
lines of 64 bytes, counted from the start of the storage, so that two imports of one storage can share a
line at their edges. A line is

- *valid*: the CPU holds a copy. What the NPU writes to DDR stays invisible to the CPU. A line that is not
  valid has the same bytes in both views.
- *dirty* (and valid): the CPU wrote it and DDR has not got it yet.

**The CPU's reads and writes cannot be trapped.** Writes are found afterwards: `Storage.observe`, called at
the beginning of each operation, compares the mapped bytes with what they were at the last observation. It
follows that all writes since then count as one; that a write of equal bytes is not seen (a CPU that writes
a stale line's own stale bytes again has, for the model, not written); and that reads leave no trace at
all. For the latter the model is pessimistic: a line that is not valid is taken to be read, or fetched by a
prefetcher, straight away with probability `CacheBehaviour.refetch`. A legal program is right whatever the
CPU happened to hold.

**Operations** as Linux performs them on arm64 (``dma_sync_single_for_device``,
``dma_sync_single_for_cpu``): `Storage.clean` (to device) writes dirty lines to DDR and keeps them valid;
it never touches a clean line, so that a stale copy does not overwrite a result. `Storage.invalidate` (from
device) drops lines, dirty ones too: what the CPU wrote there is lost. A line that the range covers only in
part is cleaned before it is dropped, so that its neighbour's bytes survive, and with them the CPU's stale
bytes of the range come back over the NPU's: two owners in one line cannot both be right.

**Time.** `Storage.age` is a moment in which the CPU's caches replace lines: a few, drawn from the
storage's seeded generator, are written back if dirty and dropped. That is what brings a late write-back
over a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_rknpu.emulator.pages import Pages

LINE_BYTES = 64
_WORDS_PER_LINE = LINE_BYTES // 8

Bytes = npt.NDArray[np.uint8]
Lines = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CacheBehaviour:
    """How the CPU's caches behave; probabilities are per line and moment.

    ``refetch``: a dropped line is fetched again at once. ``evictions``: replacement of a line at each
    `Storage.age`. The rest is as it stands here on sound hardware and kernels; ``writes_back_after_run``
    writes every dirty line back at the end of a run.
    """

    refetch: float = 15 / 16
    evictions: float = 1 / 32
    cleaning_clears_dirty: bool = True
    edges_are_cleaned: bool = True
    writes_back_after_run: bool = False


class Storage:
    """One allocation with both views and the state of each line (see the module's text).

    ``coherent`` storages (RKNN_FLAG_MEMORY_NON_CACHEABLE) have one view and no lines to maintain.
    ``pages`` is the backing memory, whose length is a multiple of 64 bytes; ``number`` tells the storages
    of a library apart. Offsets and ranges are bytes from the storage's start, ``end`` excluded. Not
    thread-safe: the library holds its lock.
    """

    def __init__(
        self,
        pages: Pages,
        generator: np.random.Generator,
        behaviour: CacheBehaviour,
        *,
        coherent: bool = False,
        number: int = 0,
    ) -> None:
        self.pages = pages
        self.number = number
        self.coherent = coherent
        self.references = 0
        self.requested = len(pages.bytes)
        """Bytes that the application asked for; behind them there is nobody's memory."""
        self.cpu = pages.bytes
        self.size = len(self.cpu)
        self.device: Bytes = self.cpu if coherent else self.cpu.copy()
        self._behaviour = behaviour
        self._generator = generator
        if coherent:
            return
        count = self.size // LINE_BYTES
        self._seen: Bytes = self.cpu.copy()
        self._cpu_words, self._seen_words = self.cpu.view(np.uint64), self._seen.view(np.uint64)
        self._cpu_lines, self._seen_lines, self._device_lines = (
            view.reshape(count, LINE_BYTES) for view in (self.cpu, self._seen, self.device)
        )
        self.dirty: Lines = np.zeros(count, np.bool_)
        self.valid: Lines = self._draw(count)

    def observe(self) -> None:
        """Find what the CPU wrote since the last observation: those lines are valid and dirty from now on."""
        if self.coherent:
            return
        changed = self._cpu_words != self._seen_words
        if not changed.any():
            return
        written = changed.reshape(-1, _WORDS_PER_LINE).any(axis=1)
        self.dirty |= written
        self.valid |= written
        self._seen_lines[written] = self._cpu_lines[written]

    def clean(self, start: int, end: int) -> None:
        """Write the range's dirty lines to DDR, whole; they stay valid (TO_DEVICE)."""
        if self.coherent:
            return
        self.observe()
        self._write_back(_lines(start, end))

    def invalidate(self, start: int, end: int) -> None:
        """Drop the range's lines, with what the CPU wrote there (FROM_DEVICE); partly covered lines are
        cleaned first.
        """
        if self.coherent or start >= end:
            return
        self.observe()
        if self._behaviour.edges_are_cleaned:
            for edge in _partial_lines(start, end):
                self._write_back(slice(edge, edge + 1))
        lines = _lines(start, end)
        self._fetch(lines)
        self.valid[lines] = self._draw(len(self.valid[lines]))

    def device_read(self, start: int, end: int) -> Bytes:
        """What the NPU reads: a view of DDR, not a copy."""
        return self.device[start:end]

    def device_write(self, start: int, data: Bytes) -> None:
        """The NPU writes ``data`` (uint8, flat); the CPU sees it only in lines that are not valid."""
        end = start + len(data)
        if self.coherent:
            self.device[start:end] = data
            return
        self.observe()
        self.device[start:end] = data
        lines = _lines(start, end)
        unseen = np.flatnonzero(~self.valid[lines]) + lines.start
        if unseen.size:
            self._copy_lines(unseen)

    def age(self) -> None:
        """Let the caches replace a few lines: written back if dirty, dropped, mostly fetched again."""
        if self.coherent:
            return
        self.observe()
        count = self._generator.binomial(len(self.dirty), self._behaviour.evictions)
        if not count:
            return
        everything = count == len(self.dirty)
        victims = np.arange(count) if everything else self._generator.integers(0, len(self.dirty), count)
        written_back = victims[self.dirty[victims]]
        self._device_lines[written_back] = self._cpu_lines[written_back]
        self.dirty[victims] = False
        self._copy_lines(victims)
        self.valid[victims] = self._draw(count)

    def age_after_run(self) -> None:
        """The same at the end of a run, when the NPU has written its outputs."""
        self.age()
        if not self.coherent and self._behaviour.writes_back_after_run:
            self._device_lines[self.dirty] = self._cpu_lines[self.dirty]
            self.dirty[:] = False

    def _write_back(self, lines: slice) -> None:
        dirty = np.flatnonzero(self.dirty[lines]) + lines.start
        if not dirty.size:
            return
        self._device_lines[dirty] = self._cpu_lines[dirty]
        if self._behaviour.cleaning_clears_dirty:
            self.dirty[dirty] = False

    def _fetch(self, lines: slice) -> None:
        """Make the CPU's view of the lines DDR's, clean."""
        self._cpu_lines[lines] = self._device_lines[lines]
        self._seen_lines[lines] = self._device_lines[lines]
        self.dirty[lines] = False

    def _copy_lines(self, lines: npt.NDArray[np.intp]) -> None:
        self._cpu_lines[lines] = self._device_lines[lines]
        self._seen_lines[lines] = self._device_lines[lines]

    def _draw(self, count: int) -> Lines:
        """Which of ``count`` lines the CPU fetches again at once."""
        return self._generator.random(count) < self._behaviour.refetch

    def release(self) -> None:
        """Drop the views and give the pages back; the storage must not be used afterwards."""
        self.__dict__.pop("_cpu_words", None)
        self.__dict__.pop("_cpu_lines", None)
        self.cpu = self.device = np.empty(0, np.uint8)
        self.pages.release()


def _lines(start: int, end: int) -> slice:
    """The lines that a range touches."""
    return slice(start // LINE_BYTES, -(-end // LINE_BYTES))


def _partial_lines(start: int, end: int) -> list[int]:
    """The lines at the range's edges that it covers only in part."""
    first, last = start // LINE_BYTES, (end - 1) // LINE_BYTES
    partial = [first] if start % LINE_BYTES else []
    if end % LINE_BYTES and last not in partial:
        partial.append(last)
    return partial

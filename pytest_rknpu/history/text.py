"""A history as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_rknpu.history.collecting import Collected
from pytest_rknpu.history.overview import BoardHistory, History
from pytest_rknpu.history.queries import RunAt, Unsteady
from pytest_rknpu.history.timeline import Break, Seen, Turned, alike
from pytest_rknpu.history.trends import Trend, steps
from pytest_rknpu.history.versions import in_brief, title_of
from pytest_rknpu.verdict import Outcome

HARDWARE = "hardware"
SOFTWARE = "software, which says nothing about silicon"
_MOST = 10
"""Findings of one kind for one board; the page and the JSON have all."""

Finding = tuple[str, ...]
"""A line, and lines below it that say more."""


def history_text(history: History, collected: Collected) -> str:
    """What changed when, board by board: those that regressed first, then those on which something fails."""
    lines = [*head_lines(history, collected)]
    for board in sorted(history.boards, key=_urgency):
        # Tests without a board (of a wheel, of boards.toml) are of interest where one fails.
        if board.board.name or board.breaks or board.flaky:
            lines += ["", *_board(history.runs, board)]
    return "\n".join(map(_printable, lines))


def _urgency(board: BoardHistory) -> tuple[bool, bool]:
    """What sorts boards; those that are alike in it stay in their order."""
    return not board.regressions, not any(one.open for one in board.breaks)


def _printable(line: str) -> str:
    """A line without characters that a terminal obeys: what files of others say is not trusted."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def head_lines(history: History, collected: Collected) -> Iterator[str]:
    """How much was read, and what was not."""
    first, last = history.runs[0], history.runs[-1]
    counts = [f"{collected.added} new"]
    if collected.unchanged:
        counts.append(f"{plural(collected.unchanged, 'file')} read earlier")
    if collected.again:
        counts.append(f"{plural(collected.again, 'file')} with a run that is there already")
    yield f"{plural(len(history.runs), 'run')}, {first.day} to {last.day} ({', '.join(counts)})"
    for one in collected.left_out:
        yield f"LEFT OUT {one}"


def plural(count: int, word: str) -> str:
    """``3 runs``, and ``1 run``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def and_more(others: Sequence[object]) -> str:
    """What to say behind one test of several."""
    return f" and {plural(len(others), 'more test')}" if others else ""


def _board(runs: Sequence[RunAt], board: BoardHistory) -> Iterator[str]:
    software = "" if board.board.evidence in (HARDWARE, "") else f"; {SOFTWARE}"
    sets = f"{plural(len(board.columns), 'set')} of versions"
    yield f"{board.board}: {plural(len(board.runs), 'run')}, {sets}{software}"
    yield from _listed(_turned(runs, *group) for group in alike(board.regressions))
    ordered = [one for one in open_first(board.breaks) if not _is_told(one, board.regressions)]
    told = [one for one in ordered if not one.transient]
    yield from _listed(_break(runs, one) for one in told)
    if len(ordered) > len(told):
        yield f"  {len(ordered) - len(told)} times something failed and passed again, on the same versions"
    yield from _listed(_flaky(own) for own in _by_test(board.flaky))
    yield from _listed(_trend(runs, own) for own in _by_plot(board.trends))
    if not (board.breaks or board.flaky):
        yield "  nothing failed, nothing is flaky"


def _is_told(one: Break, regressions: Iterable[Turned]) -> bool:
    """Whether it began in the newest run, and each of its tests is among what regressed there."""
    began = {(turned.test, turned.after.run) for turned in regressions}
    return all((test, one.span.first_failure.run) in began for test in one.tests)


def _listed(findings: Iterable[Finding]) -> Iterator[str]:
    everything = list(findings)
    for head, *below in everything[:_MOST]:
        yield f"  {head}"
        yield from (f"      {line}" for line in below)
    if len(everything) > _MOST:
        yield f"  and {len(everything) - _MOST} more like that (--json and --html have all)"


def open_first(found: Iterable[Break]) -> list[Break]:
    """What still fails, then what passes again; of each the newest first, and last what never passed."""
    return sorted(found, key=lambda one: (not one.open, one.never_passed, -one.span.first_failure.run))


def _turned(runs: Sequence[RunAt], one: Turned, *others: Turned) -> Finding:
    return (
        f"REGRESSED {', '.join(one.requirements)}: {one.turn} in the newest run ({_at(runs, one.after)})",
        f"{one.before.outcome} in {_at(runs, one.before)}, {one.after.outcome} now: {changed(one.differs)}",
        one.test + and_more(others),
    )


def _break(runs: Sequence[RunAt], one: Break) -> Finding:
    """Since when, after which change, until when."""
    span = one.span
    waived = ", waived" if span.first_failure.outcome is Outcome.WAIVED else ""
    if span.passes_again is None:
        state = f"STILL FAILS after {plural(span.failures, 'run')}{waived}"
        until: tuple[str, ...] = ()
    else:
        state = f"passes again{waived and ' (it was waived)'}"
        until = (f"again since {_at(runs, span.passes_again)}: {in_brief(span.passes_again.versions)}",)
    if span.last_pass is None:
        since = f"since it was first tried: {in_brief(span.first_failure.versions)}"
    else:
        since = f"passed last in {_at(runs, span.last_pass)}: {changed(one.differs)}"
    more = and_more(one.tests[1:])
    first = _at(runs, span.first_failure)
    return (
        f"{one.requirement or 'no requirement'}: failed first in {first}; {state}",
        since,
        *until,
        f"{one.tests[0]}{more}",
    )


def changed(differs: Mapping[str, tuple[str, str]]) -> str:
    """Which versions changed, in words."""
    if not differs:
        return "no recorded version changed in between"
    return ", ".join(f"{title_of(key)} {old} -> {new}" for key, (old, new) in differs.items())


def _by_test(found: Sequence[Unsteady]) -> list[list[Unsteady]]:
    tests: dict[str, list[Unsteady]] = {}
    for one in found:
        tests.setdefault(one.test, []).append(one)
    return list(tests.values())


def _flaky(sets: Sequence[Unsteady]) -> Finding:
    """A test with the set of versions that has most attempts."""
    one = max(sets, key=lambda one: one.flaky.attempts)
    word = "FLAKY" if any(each.flaky.verdict_changes for each in sets) else "not always judged"
    more = f", and with {plural(len(sets) - 1, 'other set')}" if len(sets) > 1 else ""
    return (
        f"{word} {', '.join(one.requirements)}: {counts_of(one)}; {bounds_of(one)}",
        f"{turns_of(one)}; {seeds_of(one)}",
        f"with {in_brief(one.versions)}{more}",
        one.test,
    )


def counts_of(one: Unsteady) -> str:
    """How the attempts at a flaky test ended."""
    return ", ".join(f"{outcome} {count}" for outcome, count in sorted(one.flaky.outcomes.items()))


def bounds_of(one: Unsteady) -> str:
    """How often it does not pass, as far as that is known."""
    lower, upper = (f"{100 * bound:.3g} %" for bound in one.flaky.bounds)
    return f"does not pass in {lower} to {upper} of attempts (95 %)"


def turns_of(one: Unsteady) -> str:
    """Whether it comes and goes, or turned once."""
    if one.flaky.changes == 1:
        return "ended otherwise from one run on: perhaps something changed that no version tells of"
    return f"ended otherwise than the time before {one.flaky.changes} times"


def seeds_of(one: Unsteady) -> str:
    """What the seeds say of a flaky test."""
    found = one.flaky
    if found.differing_seeds:
        return f"ended differently with the same seed ({found.differing_seeds} of {found.seeds} seeds)"
    return f"each of {found.seeds} seeds always ended alike"


def _by_plot(found: Sequence[Trend]) -> list[list[Trend]]:
    together: dict[tuple[str, str, str], list[Trend]] = {}
    for trend in found:
        together.setdefault((trend.test, trend.model, trend.core_mask), []).append(trend)
    return list(together.values())


def _trend(runs: Sequence[RunAt], lines: Sequence[Trend]) -> Finding:
    """From where to where the quantiles went, and where they moved last."""
    points = lines[0].points
    unfit = sum(not point.fit for point in points)
    words = f"latency of {lines[0].what}: {', '.join(map(ends_of, lines))}"
    below = [f"{plural(len(points), 'run')} of {samples_of(lines[0])}"]
    if unfit:
        below[0] += f"; {unfit} inconclusive or disturbed, compared with nothing"
    below += [
        f"{name_of(line)} moved last in {runs[found[-1].after.run].run_id}, "
        f"by {100 * found[-1].relative:+.1f} % (bounds apart; rknpu compare of both runs decides)"
        for line in lines
        if (found := steps(line.points))
    ]
    return (words, *below, lines[0].test)


def name_of(line: Trend) -> str:
    """How the field calls its quantile."""
    return f"p{100 * line.quantile:g}"


def ends_of(line: Trend) -> str:
    """Its first and last value."""
    return f"{name_of(line)} {line.points[0].value_ms:.3f} to {line.points[-1].value_ms:.3f} ms"


def samples_of(line: Trend) -> str:
    """How many samples its points have."""
    counts = sorted({point.samples for point in line.points})
    return f"{counts[0]} samples" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} samples"


def _at(runs: Sequence[RunAt], seen: Seen) -> str:
    return runs[seen.run].run_id

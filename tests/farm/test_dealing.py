"""Which tests a worker gets next: decisions alone, and whole runs played through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.dealt_runs import Played, lower_bound, play
from pytest_rknpu.farm.dealing import Dealer, Job


def jobs(*seconds: float, name: str = "t") -> list[Job]:
    return [Job(f"{name}{number}", value) for number, value in enumerate(seconds)]


def test_a_machine_is_dealt_whole_and_in_order() -> None:
    dealer = Dealer({"m": jobs(1, 5, 3)}, {})
    assert dealer.deal("w", 4) == ("m", jobs(1, 5, 3))
    assert not dealer.left
    assert dealer.deal("w", 4) is None


def test_the_station_with_most_work_goes_first() -> None:
    dealer = Dealer({"small": jobs(1), "large": jobs(5, 5), "middle": jobs(7)}, {})
    dealt = [dealer.deal(worker, 3) for worker in ("a", "b", "c", "d")]
    assert [each and each[0] for each in dealt] == ["large", "middle", "small", None]


def test_in_a_pool_the_longest_go_first_in_shrinking_shares() -> None:
    dealer = Dealer({"p": jobs(*[1.0] * 64, *[2.0] * 32)}, {"p": 2})
    order, sizes = [], []
    while (dealt := dealer.deal("a", 2)) is not None:
        sizes.append(len(dealt[1]))
        order += [job.item for job in dealt[1]]
    assert order == [f"t{number}" for number in (*range(64, 96), *range(64))]
    assert sizes[0] > 2
    assert sizes[-4:] == [1] * 4


def test_a_pool_takes_as_many_workers_as_it_has_boards() -> None:
    dealer = Dealer({"p": jobs(*[10.0] * 40)}, {"p": 2})
    dealt = [dealer.deal(worker, 3) for worker in ("a", "b", "c")]
    assert [each is None for each in dealt] == [False, False, True]


def test_who_has_long_work_in_hand_gets_a_short_one() -> None:
    dealer = Dealer({"p": jobs(100, 9, 8, 1)}, {"p": 2})
    assert dealer.deal("a", 2) == ("p", jobs(100))
    assert dealer.deal("a", 2, in_hand_s=100.0) == ("p", jobs(100, 9, 8, 1)[3:])


def test_nobody_opens_another_board_for_less_work_than_that_costs() -> None:
    dealer = Dealer({"p": jobs(1, 1, 1, 1)}, {"p": 2}, opening_s=3.0)
    assert dealer.deal("a", 2) is not None
    assert dealer.deal("b", 2) is None


def test_what_a_dead_worker_had_is_dealt_again() -> None:
    dealer = Dealer({"m": jobs(1, 2, 3)}, {})
    dealer.deal("a", 1)
    assert dealer.deal("b", 2) is None
    dealer.take_back("a", {"m": jobs(1, 2, 3)[1:]})
    assert dealer.deal("b", 1) == ("m", jobs(1, 2, 3)[1:])


durations = st.floats(0.01, 50.0)
stations = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(1, 4), st.lists(durations, max_size=12)), min_size=1
)


@given(stations, st.integers(1, 8), st.randoms(use_true_random=False), st.booleans())
def test_every_test_runs_once_and_no_station_is_crowded(stations, workers: int, random, known: bool) -> None:
    work = {name: jobs(*seconds, name=name) for name, (_, seconds) in stations.items()}
    places = {name: count for name, (count, _) in stations.items()}
    actual = {job.item: job.seconds for own in work.values() for job in own}
    if not known:
        work = {name: [Job(job.item, 1.0) for job in own] for name, own in work.items()}
    played = play(work, places, workers, actual.__getitem__, deaths=random.random() < 0.5, dice=random)
    assert sorted(played.order) == sorted(actual)
    assert all(played.most_at[name] <= places[name] for name in played.most_at)


@given(stations, st.integers(1, 8))
def test_a_run_takes_at_most_twice_the_least_time(stations, workers: int) -> None:
    """The bound of list scheduling, for expectations that are right and boards that open at once."""
    work = {name: jobs(*seconds, name=name) for name, (_, seconds) in stations.items()}
    places = {name: count for name, (count, _) in stations.items()}
    actual = {job.item: job.seconds for own in work.values() for job in own}
    played: Played = play(work, places, workers, actual.__getitem__, opening_s=0.0, in_hand=0)
    least = lower_bound(work, places, workers, actual.__getitem__, opening_s=0.0)
    assert played.makespan == pytest.approx(least) or played.makespan <= 2 * least

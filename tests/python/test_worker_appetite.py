"""How much a worker asks for: numbers in, numbers out."""

from __future__ import annotations

import pytest

from jobq.worker.appetite import BATCH, LOAD, PREFETCH, Appetite


def quick(slots: int) -> Appetite:
    """One that has seen many quick jobs."""
    appetite = Appetite(slots)
    for _ in range(1000):
        appetite.took(0.0001)
    appetite.look_ahead()
    return appetite


def test_at_first_it_fills_its_slots_and_claims_little_ahead() -> None:
    appetite = Appetite(slots=10)
    assert appetite.room(0) == 10
    appetite.look_ahead()
    assert appetite.prefetch == 5


def test_quick_jobs_are_claimed_ahead_in_whole_batches() -> None:
    appetite = quick(50)
    assert appetite.prefetch == PREFETCH
    assert appetite.room(0) == BATCH
    assert appetite.room(PREFETCH + 20) == 30
    assert appetite.room(PREFETCH + 60) == 0


def test_one_round_of_quick_jobs_is_enough_to_ask_for_the_most() -> None:
    appetite = Appetite(slots=50)
    for _ in range(50):
        appetite.took(0.0001)
    appetite.look_ahead()
    assert appetite.room(50) == BATCH


def test_slow_jobs_are_not_claimed_ahead() -> None:
    appetite = Appetite(slots=10, mean=60.0)
    appetite.look_ahead()
    assert (appetite.prefetch, appetite.room(10)) == (0, 0)


def test_full_slots_are_taken_for_slow_jobs() -> None:
    appetite = quick(10)
    appetite.look_ahead(stalled=5.0)
    assert appetite.prefetch == 0


def test_heavy_payloads_come_a_few_at_a_time() -> None:
    appetite = quick(1000)
    appetite.came([1024 * 1024] * 10)
    assert appetite.room(0) == LOAD // (1024 * 1024)
    for _ in range(40):
        appetite.came([10])
    assert appetite.room(0) == BATCH


def test_a_payload_beyond_all_bounds_comes_alone() -> None:
    appetite = Appetite(slots=10)
    appetite.came([10 * LOAD])
    assert appetite.room(0) == 1


def test_what_did_not_come_in_time_is_asked_for_in_smaller_parts() -> None:
    appetite = quick(1000)
    asked = []
    for _ in range(4):
        asked.append(appetite.room(0))
        appetite.did_not_come(asked[-1])
    assert asked == [500, 62, 7, 1]
    assert appetite.room(0) == 1


def test_it_grows_again_with_what_comes() -> None:
    appetite = Appetite(slots=1000, most=1)
    asked = []
    for _ in range(11):
        asked.append(appetite.room(0))
        appetite.came([10] * asked[-1])
    assert asked == [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500]


@pytest.mark.parametrize("asked", [0])
def test_a_settlement_without_an_answer_changes_nothing(asked: int) -> None:
    appetite = Appetite(slots=10)
    appetite.did_not_come(asked)
    assert appetite == Appetite(slots=10)

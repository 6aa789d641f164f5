"""The rule of turns, as the store in memory has it; `test_store.py` holds Postgres to the same."""

from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.memory_store.tables import turn_for_new_job


@given(st.lists(st.integers(0, 4), max_size=40))
def test_before_the_first_claim_a_persons_kth_job_has_turn_k(people: list[int]) -> None:
    turns: dict[int, list[int]] = {}
    for person in people:
        mine = turns.setdefault(person, [])
        mine.append(turn_for_new_job(0, max(mine, default=0)))
    assert all(mine == list(range(1, len(mine) + 1)) for mine in turns.values())


@given(present=st.integers(0, 10**6), waiting=st.integers(0, 10**6))
def test_a_new_job_comes_after_the_present_turn_and_its_persons_others(
    present: int, waiting: int
) -> None:
    turn = turn_for_new_job(present, waiting)
    assert turn > max(present, waiting)
    assert turn - 1 in {present, waiting}

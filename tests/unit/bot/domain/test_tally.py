"""Tests of how durations are counted."""

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.tally import BUCKETS_S, bucket_of, counted


@given(st.lists(st.floats(min_value=0, max_value=1e6)))
def test_every_duration_is_in_one_bucket(durations: list[float]) -> None:
    counts = counted(durations)
    assert sum(counts) == len(durations)
    assert len(counts) == len(BUCKETS_S) + 1


def test_a_bucket_ends_below_its_edge() -> None:
    assert [bucket_of(each) for each in (0.0, 0.0999, 0.1, 3599.0, 3600.0, 1e9)] == [
        0, 0, 1, 11, 12, 12,
    ]  # fmt: skip

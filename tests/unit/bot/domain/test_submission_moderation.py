from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.ids import BoardId, PersonId
from bot.domain.submission import Ban, RateLimit
from bot.domain.times import show_deadline
from runners.contract.task import Mode
from tests.doubles.factories import NOON

HOUR = timedelta(hours=1)


def test_a_refusal_says_what_is_limited_and_when_it_lifts() -> None:
    limit = RateLimit(3, HOUR, BoardId(1), Mode.RANKED)
    refusal = limit.refusal(NOON, NOON + timedelta(minutes=48))
    assert refusal.code == "rate-limit"
    assert refusal.message == (
        "at most 3 ranked submissions to this leaderboard are allowed in 60 min; "
        "submit again in 12 min"
    )
    assert refusal.moments == {"in 12 min": NOON + HOUR}


def test_a_wide_limit_names_neither_mode_nor_board() -> None:
    refusal = RateLimit(1, timedelta(days=3)).refusal(NOON, NOON)
    assert refusal.message == "at most 1 submission is allowed in 3 days; submit again in 3 days"


def test_a_limit_of_one_person_says_why_and_until_when() -> None:
    limit = RateLimit(2, HOUR, person=PersonId(3), reason="a flood")
    told = "an admin limited your submissions: a flood; at most 2 submissions are allowed in 60 min"
    assert limit.refusal(NOON, NOON).message == f"{told}; submit again in 60 min"
    end = NOON + timedelta(minutes=5)
    refusal = replace(limit, until=end).refusal(NOON, NOON)
    assert f"submissions until {show_deadline(end)}: a flood" in refusal.message
    assert "submit again in 5 min" in refusal.message
    assert refusal.moments == {show_deadline(end): end, "in 5 min": end}
    assert all(words in refusal.message for words in refusal.moments)


def test_a_ban_says_until_when_it_lasts() -> None:
    end = NOON + HOUR
    refusal = Ban("a flood", end).refusal
    told = f"you are banned from submitting until {show_deadline(end)}: a flood; contact an admin"
    assert refusal.message == told
    assert refusal.moments == {show_deadline(end): end}


def test_a_limit_that_lifts_this_moment_still_names_a_time() -> None:
    assert "again in 1 s" in RateLimit(1, HOUR).refusal(NOON, NOON + HOUR).message


@pytest.mark.parametrize(("most", "window"), [(0, HOUR), (1, timedelta(0))])
def test_a_limit_of_nothing_is_no_limit(most: int, window: timedelta) -> None:
    with pytest.raises(ValueError, match="a number of at least 1"):
        RateLimit(most, window)


def test_a_window_is_shown_in_words() -> None:
    assert RateLimit(1, HOUR).window_words == "60 min"

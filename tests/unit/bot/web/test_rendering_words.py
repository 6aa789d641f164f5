from datetime import UTC, datetime, timedelta, timezone

import pytest

from bot.web.rendering import day, many, moment, query, time_left, upper_first


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(days=3, hours=4, minutes=5), "3 days 4 h"),
        (timedelta(days=1, hours=4), "28 h 0 min"),
        (timedelta(minutes=75), "1 h 15 min"),
        (timedelta(seconds=61), "1 min 1 s"),
        (timedelta(seconds=-5), "0 min 0 s"),
    ],
)
def test_a_time_that_runs_is_said_in_two_units(span: timedelta, words: str) -> None:
    assert time_left(span) == words


def test_moments_are_said_in_utc() -> None:
    at = datetime(2026, 11, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert (moment(at), day(at)) == ("2026-10-31 23:00 UTC", "2026-10-31")
    assert moment(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02 00:00 UTC"


def test_numbers_come_with_their_noun() -> None:
    assert (many(1, "run", "runs"), many(2_000, "run", "runs")) == ("1 run", "2,000 runs")


def test_only_the_first_letter_is_made_large() -> None:
    assert (upper_first("vs first"), upper_first("")) == ("Vs first", "")


def test_an_address_has_only_what_was_asked_for() -> None:
    assert query({"gpu": "A 1&b", "version": None, "person": "", "page": 0}) == "gpu=A+1%26b&page=0"

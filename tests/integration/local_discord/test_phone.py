"""A page shows what Discord's app for phones shows."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.doubles.discord.phone import relative

NOW = datetime(2026, 11, 26, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds ago"),
        (-1, "a second ago"),
        (90, "in a minute"),
        (-3600, "an hour ago"),
        (-7200, "2 hours ago"),
        (3 * 86_400, "in 3 days"),
        (73 * 31_557_600, "in 73 years"),
    ],
)
def test_a_relative_time_is_that_of_the_message(seconds: int, words: str) -> None:
    assert relative(NOW + timedelta(seconds=seconds), NOW) == words

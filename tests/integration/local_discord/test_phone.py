"""A page shows what Discord's app for phones shows."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.phone import page, relative

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


def test_a_mention_has_the_name_of_whom_it_is_of() -> None:
    drawn = page([("line", Message(1, Mock(), Mock(), "<@17> in <#18>"))], {"17": "Ada & Bob"})
    assert "@Ada &amp; Bob" in drawn
    assert "#someone" in drawn

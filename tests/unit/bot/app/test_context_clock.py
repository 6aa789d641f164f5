"""The machine's clock."""

from datetime import UTC, timedelta

from bot.app.context import SystemClock


def test_the_time_is_aware_in_utc_and_does_not_go_back() -> None:
    clock = SystemClock()
    first, second = clock.now(), clock.now()
    assert first.tzinfo is UTC
    assert timedelta() <= second - first < timedelta(seconds=10)

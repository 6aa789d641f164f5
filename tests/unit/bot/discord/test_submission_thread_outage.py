import pytest

from bot.discord import submission_thread
from bot.discord.submission_thread import LONGEST_WAIT_S, OUT_AFTER, OutageBackoff, pause_s


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(submission_thread, "time", found)
    return found


def away(count: int = OUT_AFTER) -> OutageBackoff:
    found = OutageBackoff()
    for _ in range(count):
        found.failed()
    return found


def test_the_pause_doubles_up_to_the_longest() -> None:
    assert [pause_s(failures) for failures in (1, 2, 3, 4, 5, 5000)] == [2, 4, 8, 16, 20, 20]


def test_a_single_failure_keeps_nobody_back(time: Time) -> None:
    assert not away(OUT_AFTER - 1).is_out
    assert away(OUT_AFTER - 1).wait_s() == 0


def test_in_an_outage_one_at_a_time_tries(time: Time) -> None:
    found = away()
    assert found.wait_s() == 0
    assert found.wait_s() == pause_s(OUT_AFTER)
    time.now += 3
    assert found.wait_s() == pause_s(OUT_AFTER) - 3
    time.now += pause_s(OUT_AFTER)
    assert found.wait_s() == 0


def test_ten_minutes_of_outage_take_few_tries_and_its_end_is_seen_soon(time: Time) -> None:
    found, tries = away(), 0
    for _ in range(600):
        if found.wait_s() == 0:
            tries += 1
            found.failed()
        time.now += 1
    assert 600 / LONGEST_WAIT_S - 1 <= tries <= 600 / LONGEST_WAIT_S + OUT_AFTER
    assert found.wait_s() <= LONGEST_WAIT_S


def test_one_success_ends_the_outage() -> None:
    found = away(50)
    assert found.succeeded()
    assert not found.is_out
    assert found.wait_s() == 0
    assert not found.succeeded()

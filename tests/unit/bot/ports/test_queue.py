"""When a worker counts as silent."""

from datetime import timedelta

from bot.domain.job import SILENT_AFTER, Worker
from tests.doubles.factories import NOON


def test_a_worker_is_silent_after_three_missed_heartbeats() -> None:
    worker = Worker("box:1", ("CPU",), seen_at=NOON)
    assert not worker.is_silent(NOON + SILENT_AFTER)
    assert worker.is_silent(NOON + SILENT_AFTER + timedelta(milliseconds=1))


def test_of_a_worker_of_another_version_nothing_is_known() -> None:
    assert not Worker("box:1", ("CPU",)).is_silent(NOON)

"""A clock that moves only when a test moves it."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Starts at noon on a fixed day."""

    def __init__(self, start: datetime = datetime(2026, 11, 1, 12, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

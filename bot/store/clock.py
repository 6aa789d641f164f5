"""The clock of this machine."""

from datetime import UTC, datetime


class SystemClock:
    """The machine's own clock, in UTC."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        return datetime.now(UTC)

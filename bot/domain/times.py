"""Deadlines as people write and read them: `YYYY-MM-DD[ HH:MM[:SS]][ zone]`, always aware."""

import difflib
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from bot.domain.errors import UserError

_FORM = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})(?:[ T](?P<time>\d{1,2}:\d{2})(?::(?P<seconds>\d{2}))?)?"
    r"(?: *(?P<zone>[^\s\d].*|[+-].*))?"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_YEARS = range(1971, 9000)
"""The years that stay representable when they are moved to another zone."""


def parse_deadline(text: str) -> datetime:
    """The aware time that is meant: UTC without a zone, the day's last minute without a time."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise _bad(text, "it is not in that form")
    try:
        written = f"{found['day']} {found['time'] or '23:59'}:{found['seconds'] or '00'}"
        naive = datetime.strptime(written, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007  the zone follows
    except ValueError as error:
        raise _bad(text, "there is no such day or time") from error
    if naive.year not in _YEARS:
        raise _bad(text, "that year is out of range")
    deadline = naive.replace(tzinfo=_zone(text, (found["zone"] or "UTC").strip()))
    there_and_back = deadline.astimezone(UTC).astimezone(deadline.tzinfo)
    if there_and_back.replace(tzinfo=None) != naive:
        raise _bad(text, "the clocks of that zone skip this time")
    return deadline


def _zone(text: str, name: str) -> tzinfo:
    if name.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    offset = _OFFSET.fullmatch(name.upper())
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if span >= timedelta(hours=24):
            raise _bad(text, f"{name} is no offset from UTC")
        return timezone(sign * span)
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as error:
        near = difflib.get_close_matches(name, sorted(available_timezones()), n=2, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise _bad(text, f"there is no time zone {name!r}{hint}") from error


def _bad(text: str, why: str) -> UserError:
    return UserError(
        "bad-deadline",
        f"deadline {text!r}: {why}; write YYYY-MM-DD[ HH:MM][ zone], "
        "such as 2027-01-31 18:00 Europe/Berlin (UTC when no zone is given)",
    )


def show_deadline(deadline: datetime) -> str:
    """The deadline with its zone, such as `2027-01-31 18:00 CET (17:00 UTC)`."""
    if deadline.tzinfo is None:
        raise ValueError("a deadline must be aware")
    shown = f"{deadline:%Y-%m-%d %H:%M} {deadline.tzname()}"
    utc = deadline.astimezone(UTC)
    if deadline.utcoffset() == timedelta(0):
        return f"{utc:%Y-%m-%d %H:%M} UTC"
    same_day = utc.date() == deadline.date()
    return f"{shown} ({utc:%H:%M} UTC)" if same_day else f"{shown} ({utc:%Y-%m-%d %H:%M} UTC)"

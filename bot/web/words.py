"""How the pages say times, spans and numbers: filters of the templates."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from bot.domain.durations import show_time
from bot.reports.blocks import Block
from bot.web.marks import marked

_DAY_S = 86_400
_HOUR_S = 3_600


def left(span: timedelta) -> str:
    """A time that runs, such as `3 days 4 h`; `static/podium.js` counts on in the same words."""
    seconds = max(0, int(span.total_seconds()))
    if seconds >= 2 * _DAY_S:
        return f"{seconds // _DAY_S} days {seconds // _HOUR_S % 24} h"
    if seconds >= _HOUR_S:
        return f"{seconds // _HOUR_S} h {seconds // 60 % 60} min"
    return f"{seconds // 60} min {seconds % 60} s"


def moment(at: datetime) -> str:
    """A time of an aware day in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def day(at: datetime) -> str:
    """A day in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def many(count: int, one: str, more: str) -> str:
    """A number with its noun, such as `1 person` or `2,000 people`."""
    return f"{count:,} {one if count == 1 else more}"


def capitalise(text: str) -> str:
    """The text with a capital first letter, the rest as it is."""
    return text[:1].upper() + text[1:]


def kind(block: Block) -> str:
    """Which of a report's blocks it is."""
    return type(block).__name__


def query(values: Mapping[str, object]) -> str:
    """The part of an address behind `?`, without what is None or empty."""
    return urlencode({name: value for name, value in values.items() if value not in {None, ""}})


FILTERS = {
    "capitalise": capitalise,
    "kind": kind,
    "query": query,
    "time": show_time,
    "left": left,
    "moment": moment,
    "day": day,
    "many": many,
    "marked": marked,
}
"""By the names that templates call them."""

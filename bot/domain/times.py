"""Deadlines, durations and speedups in the formats that people use."""

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from statistics import fmean
from zoneinfo import ZoneInfo, available_timezones

from bot.domain.errors import UserError
from bot.domain.noise import noise_of
from bot.domain.scoring import PairRatio, Score, ScoreValue
from runners.contract.comparison import Ratio
from runners.contract.evaluation import Evaluation, Measurement

_FORM = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})(?:[ T](?P<time>\d{1,2}:\d{2})(?::(?P<seconds>\d{2}))?)?"
    r"(?: *(?P<zone>[^\s\d].*|[+-].*))?"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_YEARS = range(1971, 9000)
"""Years that can still be represented in any time zone."""


def parse_deadline(text: str) -> datetime:
    """Return the aware time; UTC without a zone, the day's last minute without a time."""
    return _parse(text, without_time="23:59")


def parse_opening(text: str) -> datetime:
    """Return the aware time; UTC without a zone, the day's first minute without a time."""
    return _parse(text, without_time="00:00")


def _parse(text: str, *, without_time: str) -> datetime:
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise _bad_date(text, "the format is not valid")
    try:
        written = f"{match['day']} {match['time'] or without_time}:{match['seconds'] or '00'}"
        naive = datetime.strptime(written, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007  the zone follows
    except ValueError as error:
        raise _bad_date(text, "this day or time does not exist") from error
    if naive.year not in _YEARS:
        raise _bad_date(text, "that year is out of range")
    deadline = naive.replace(tzinfo=_zone(text, (match["zone"] or "UTC").strip()))
    round_trip = deadline.astimezone(UTC).astimezone(deadline.tzinfo)
    if round_trip.replace(tzinfo=None) != naive:
        raise _bad_date(text, "this time is skipped by the time zone's change to summer time")
    return deadline


def _zone(text: str, name: str) -> tzinfo:
    if name.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    offset = _OFFSET.fullmatch(name.upper())
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if span >= timedelta(hours=24):
            raise _bad_date(text, f"{name} is not a valid UTC offset")
        return timezone(sign * span)
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as error:
        near = difflib.get_close_matches(name, sorted(available_timezones()), n=2, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise _bad_date(text, f"there is no time zone {name!r}{hint}") from error


def _bad_date(text: str, why: str) -> UserError:
    return UserError(
        "bad-deadline",
        f"date {text!r}: {why}; write YYYY-MM-DD[ HH:MM][ zone], "
        "such as 2027-01-31 18:00 Europe/Berlin (UTC when no zone is given)",
    )


def show_deadline(deadline: datetime) -> str:
    """Return the deadline with its zone, such as `2027-01-31 18:00 CET (17:00 UTC)`."""
    if deadline.tzinfo is None:
        raise ValueError("a deadline must be aware")
    shown = f"{deadline:%Y-%m-%d %H:%M} {deadline.tzname()}"
    utc = deadline.astimezone(UTC)
    if deadline.utcoffset() == timedelta(0):
        return f"{utc:%Y-%m-%d %H:%M} UTC"
    same_day = utc.date() == deadline.date()
    return f"{shown} ({utc:%H:%M} UTC)" if same_day else f"{shown} ({utc:%Y-%m-%d %H:%M} UTC)"


_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_DIGITS = 4


def show_time(time_ns: float, uncertainty_ns: float | None = None) -> str:
    """Return a time such as `29.14 µs ± 0.06`; the uncertainty is never rounded down."""
    scale, unit = _unit(time_ns)
    value = time_ns / scale
    if uncertainty_ns is None:
        return f"{value:.{_decimals(value, 3)}f} {unit}"
    half = uncertainty_ns / scale
    decimals = _decimals_for(value, half)
    return f"{value:.{decimals}f} {unit} ± {_round_up(half, decimals):.{decimals}f}"


def show_factor(factor: float) -> str:
    """Return how many times faster, with at least two digits, near 1 three, such as `3.2x`."""
    digits = 3 if 0.95 <= factor < 1.995 else 2
    return f"{factor:.{min(_decimals(factor, digits), 3)}f}x"


def show_percent(ratio: float) -> str:
    """Return a relative difference below two, such as `2.9 %`."""
    return f"{100 * ratio:.1f} %" if ratio < 0.0995 else f"{100 * ratio:.0f} %"


_AS_FACTOR = 1.995
"""From this ratio of two times on, a difference is shown as a factor: `2.0x`, not `100 %`."""


def show_change(time_ns: float, other_ns: float, other: str = "") -> str:
    """Return how a time compares with another: `2.9 % faster than before`, `16x as fast as before`.

    A slower one is `3.0 % slower than before`, and from twice the time on `3.2x as long as before`.
    """
    is_faster = time_ns < other_ns
    ratio = other_ns / time_ns if is_faster else time_ns / other_ns
    if ratio >= _AS_FACTOR:
        words, link = f"{show_factor(ratio)} as {'fast' if is_faster else 'long'}", "as"
    else:
        words, link = f"{show_percent(ratio - 1)} {'faster' if is_faster else 'slower'}", "than"
    return f"{words} {link} {other}" if other else words


def show_gap(time_ns: float, ahead_ns: float, ahead: str = "") -> str:
    """Return how far a time is behind another, such as `2.9 % behind 1st` or `3.2x as long as 1st`.

    Without a name, it is `+2.9 %` or `3.2x`.
    """
    ratio = max(1.0, time_ns / ahead_ns)
    if ratio >= _AS_FACTOR:
        return show_change(time_ns, ahead_ns, ahead) if ahead else show_factor(ratio)
    words = show_percent(ratio - 1)
    return f"{words} behind {ahead}" if ahead else f"+{words}"


_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def show_rate(per_s: float) -> str:
    """Return a rate per second with three digits and a prefix, such as `3.35 T`."""
    scale, prefix = next((each for each in _PREFIXES if per_s >= 0.9995 * each[0]), _PREFIXES[-1])
    return f"{per_s / scale:.3g} {prefix}".rstrip()


def common_unit(times_ns: Sequence[float]) -> tuple[float, str]:
    """Return one unit for these times, chosen by the smallest: its nanoseconds and its name."""
    return _unit(min(times_ns, default=1.0))


def _unit(time_ns: float) -> tuple[float, str]:
    for scale, unit in _UNITS:
        # 999.96 µs would be shown as 1000 µs, so the larger unit starts a little below 1.
        if time_ns >= 0.99995 * scale:
            return scale, unit
    return _UNITS[-1]


def _decimals(value: float, digits: int) -> int:
    """Return the decimals that show `value` with this many significant digits, at most six."""
    if value <= 0:
        return 0
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return min(6, max(0, digits - 1 - exponent))


def _decimals_for(value: float, half: float) -> int:
    """Return decimals for four digits of the value, fewer (at least two) if those are noise."""
    decimals = _decimals(value, _DIGITS)
    fewest = _decimals(value, 2)
    while decimals > fewest and half >= 10 ** (2 - decimals):
        decimals -= 1
    return decimals


def _round_up(half: float, decimals: int) -> float:
    step = 10.0**decimals
    return math.ceil(half * step - 1e-9) / step


def show_span(seconds: float) -> str:
    """Return a waiting time in rough words, such as `2 min`."""
    if seconds < 0.95:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def ordinal(number: int) -> str:
    """Return a rank as an ordinal: 1st, 2nd, 11th."""
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"


_MEDALS = {1: "🥇", 2: "🥈", 3: "🥉"}


def medal(rank: int) -> str:
    """Return the medal of one of the first three ranks with a space, or an empty string."""
    return f"{_MEDALS[rank]} " if rank in _MEDALS else ""


def rank_sign(rank: int, *, shared: bool) -> str:
    """Return what stands before a name: `🥇`, `🥈 2=` for a shared rank, `4.` or `4=` below."""
    number = f"{rank}=" if shared else ""
    return f"{medal(rank)}{number}".rstrip() or f"{rank}."


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """How many times faster a time is than another, with the ends of its interval.

    Without an interval of both times there are no ends; `high` is also None if it is unlimited.
    """

    factor: float
    low: float | None = None
    high: float | None = None


def speed_up(slower: ScoreValue, faster: ScoreValue) -> SpeedUp:
    """Return how many times faster the second time is than the first."""
    factor = slower.time_ns / faster.time_ns
    if not (slower.confirmed and faster.confirmed):
        return SpeedUp(factor)
    low = max(0.0, slower.time_ns - slower.uncertainty_ns) / faster.upper_ns
    least_ns = faster.time_ns - faster.uncertainty_ns
    return SpeedUp(factor, low, slower.upper_ns / least_ns if least_ns > 0 else None)


_TELLING = 0.5
"""A ratio whose half-width is more than this part of it says nothing to a reader."""


def speed_up_in_words(measured: Measurement) -> str:
    """Return a speedup such as `1.25x (1.22 to 1.28)`; empty if it is unknown or too uncertain."""
    found = uncertain_ratio(measured)
    if found is None or noise_of(measured) > _TELLING:
        return ""
    return describe_speed_up(speed_up_of(found))


def uncertain_ratio(measured: Measurement) -> PairRatio | None:
    """Return the ratio to the reference, by how much it may be wrong; None if it is unknown.

    Its half-width describes the noise. How much the judge's clock may miss of the kernel's time is
    added to it, because the reference hides nothing from that clock.
    """
    found = measured.vs_reference
    if found is None:
        return None
    return PairRatio(found.ratio, found.half_width + found.ratio * _unseen(measured))


def _unseen(measured: Measurement) -> float:
    return measured.resolution_ns / measured.time_ns


def speed_up_of(measured: Ratio | PairRatio) -> SpeedUp:
    """Return how many times faster a submission is than the run that was timed in turn with it."""
    least = measured.ratio - measured.half_width
    low = 1 / (measured.ratio + measured.half_width)
    return SpeedUp(1 / measured.ratio, low, 1 / least if least > 0 else None)


def ratio_in_turn(evaluation: Evaluation | None) -> PairRatio | None:
    """Return the ratio to the reference that was timed in turn; None if not on all benchmarks.

    It is more precise than the ratio of two times that were measured one after the other. For
    several benchmarks it is the geometric mean.
    """
    cases = evaluation.cases if evaluation else ()
    timed = [each.measurement for each in cases if each.measurement is not None]
    ratios = [each.vs_reference for each in timed if each.vs_reference is not None]
    if not ratios or len(ratios) < len(timed):
        return None
    count = len(ratios)
    mean = math.prod(each.ratio ** (1 / count) for each in ratios)
    noise = math.hypot(*(each.half_width / each.ratio for each in ratios)) / count
    return PairRatio(mean, mean * (noise + fmean(map(_unseen, timed))))


def speed_up_over(reference: ScoreValue | None, score: Score) -> SpeedUp | None:
    """Return how many times faster a score is than the reference; None if that is unknown.

    It is the ratio that was timed in turn if there is one, else that to the reference's own run.
    """
    if score.vs_reference is not None:
        return speed_up_of(score.vs_reference)
    return None if reference is None else speed_up(reference, score.value)


def show_speed_up(slower: ScoreValue, faster: ScoreValue) -> str:
    """Return a speedup such as `3.2x (2.9 to 3.6)`, without ends that are rounded away."""
    return describe_speed_up(speed_up(slower, faster))


def describe_speed_up(found: SpeedUp) -> str:
    """Return a speedup in words, as `show_speed_up` does."""
    factor = show_factor(found.factor)[:-1]
    if found.low is None:
        return f"{factor}x"
    decimals = len(factor.partition(".")[2])
    low = f"{found.low:.{decimals}f}"
    if found.high is None:
        return f"{factor}x (at least {low})"
    high = f"{found.high:.{decimals}f}"
    return f"{factor}x" if low == factor == high else f"{factor}x ({low} to {high})"


UNCONFIRMED = " (unconfirmed)"


def show_score(value: ScoreValue, unconfirmed: str = UNCONFIRMED) -> str:
    """Return a time that counts, such as `5.9 µs ± 1.2`, marked if the judge has no own value."""
    return show_time(value.time_ns, value.uncertainty_ns) + ("" if value.confirmed else unconfirmed)

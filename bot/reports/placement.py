"""The public lines of a ranked submission: what place it has won on each GPU type."""

from bot.domain.durations import show_factor, show_time
from bot.domain.leaderboard import Placement
from bot.domain.reference_times import speed_up
from bot.domain.score import Standing
from bot.reports.blocks import Text, Tone
from bot.reports.escaping import one_line

_MEDALS = {1: "🥇", 2: "🥈", 3: "🥉"}
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def placement_line(place: Placement) -> Text:
    """One GPU type in a few words, such as `🥇 1st of 7 on H100: 29.14 us ± 0.06`."""
    time = show_time(place.value.time_ns, place.value.half_width_ns)
    if place.reference is not None:
        time += f" ({show_factor(speed_up(place.reference, place.value))} vs reference)"
    if not place.is_best:
        return Text(f"{time} on {place.gpu}; the person's best there is faster", Tone.QUIET)
    rank = f"{ordinal(place.rank)}{' (shared)' if place.shared else ''} of {place.entries}"
    medal = f"{_MEDALS[place.rank]} " if place.rank in _MEDALS else ""
    best = ", a personal best" if place.improved else ""
    return Text(f"{medal}{rank} on {place.gpu}: {time}{best}", Tone.PLAIN)


def standing_line(standing: Standing) -> str:
    """A place on a board in a line, such as `1st: Ada, 29.14 us ± 0.06 (#17)`."""
    score = standing.score
    time = show_time(score.value.time_ns, score.value.half_width_ns)
    return f"{ordinal(standing.rank)}: {one_line(score.person_name)}, {time} (#{score.submission})"


def ordinal(number: int) -> str:
    """The number as a rank is spoken: 1st, 2nd, 11th."""
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"

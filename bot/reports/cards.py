"""The contents of link cards: the pictures that are shown with links to pages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot.domain.board import Board
from bot.domain.leaderboard import BoardStandings, OwnStanding, Placement
from bot.domain.scoring import ScoreValue
from bot.domain.times import ordinal, show_factor, show_score, speed_up

ROWS = 3


@dataclass(frozen=True, slots=True)
class CardRow:
    """A row of a card: a place, a name, a time, and a remark such as the gap."""

    place: str
    name: str
    time: str
    remark: str


@dataclass(frozen=True, slots=True)
class LinkCard:
    """The texts of a card; `words` are shown if there are no rows."""

    above: str
    title: str
    words: str = ""
    rows: tuple[CardRow, ...] = ()


GENERAL: Final = LinkCard(
    "", "Leaderboards for GPU kernels", "Verified times, with their intervals"
)
"""The card of pages without a card of their own, and of pages that not everyone may see."""


def board_card(shown: BoardStandings) -> LinkCard:
    """Return a card with the first people of a leaderboard, their times and gaps."""
    count = len(shown.entries)
    shared = Counter(each.rank for each in shown.entries)
    rows = []
    for each in shown.entries[:ROWS]:
        value, first = each.score.value, shown.entries[0].score.value
        gap = _vs(shown.reference, value) if each.rank == 1 else _gap(value, first)
        rank = _rank(each.rank, shared=shared[each.rank] > 1)
        rows.append(CardRow(rank, each.score.person_name, show_score(value), gap))
    above = f"Leaderboard on {shown.gpu} · {count} {'person' if count == 1 else 'people'} ranked"
    return LinkCard(above, shown.board.name, "No ranked submissions yet", tuple(rows))


def submission_card(above: str, board: str, ended: str, places: Sequence[Placement]) -> LinkCard:
    """Return a card with a submission's ranks, or how it ended if it is not its person's best."""
    rows = [
        CardRow(
            _rank(each.rank, shared=each.shared),
            f"of {each.entries} on {each.gpu}",
            show_score(each.value),
            _behind(each),
        )
        for each in places
        if each.is_best
    ]
    return LinkCard(above, board, ended, tuple(rows))


def person_card(name: str, places: Sequence[tuple[Board, OwnStanding]]) -> LinkCard:
    """Return a card with a person's best places; `places` is sorted by rank."""
    rows = [
        CardRow(
            str(own.standing.rank),
            f"{board.name} on {own.gpu}",
            show_score(own.standing.score.value),
            f"of {own.entries}",
        )
        for board, own in places[:ROWS]
    ]
    count = len({board.id for board, _ in places})
    above = f"Ranked on {count} {'board' if count == 1 else 'boards'}" if count else ""
    return LinkCard(above, name, "No ranked submissions yet", tuple(rows))


def _rank(rank: int, *, shared: bool) -> str:
    return f"{rank}=" if shared else str(rank)


def _gap(value: ScoreValue, better: ScoreValue) -> str:
    return f"+{value.time_ns / better.time_ns - 1:.1%}"


def _vs(reference: ScoreValue | None, value: ScoreValue) -> str:
    if reference is None:
        return ""
    return f"{show_factor(speed_up(reference, value).factor)} vs reference"


def _behind(place: Placement) -> str:
    if place.ahead is None:
        return _vs(place.reference, place.value)
    gap = place.value.time_ns / place.ahead.score.value.time_ns - 1
    return f"{gap:.1%} behind {ordinal(place.ahead.rank)}"

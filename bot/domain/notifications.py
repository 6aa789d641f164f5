"""Notifications for people and channels: when to send them, and in which words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.board import Board
from bot.domain.ids import BoardId, NewsId, SubmissionId
from bot.domain.scoring import Entrant, Score, Standing, entrants, indistinguishable, rank_entrants
from bot.domain.times import show_deadline, show_time

WORTH_TELLING = 10
"""The lowest rank whose loss may be announced."""
REMIND_BEFORE = timedelta(hours=24)


class NewsKind(StrEnum):
    """What people can subscribe to; they are told only of what they asked for."""

    DEADLINE = "deadline"
    """A board closes within a day."""
    LOST_RANK = "lost-rank"
    """Somebody else has taken the person's rank among the first ten."""
    RECORD = "record"
    """A board has a new best time."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A message for one addressee, such as `discord:17`; at most one per `key` is stored."""

    key: str
    kind: NewsKind
    addressee: str
    board: BoardId
    text: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification held by a process that delivers it."""

    id: NewsId
    news: Notification
    tries: int
    """How often it was claimed, including this time."""

    @property
    def doubtful(self) -> bool:
        """Return whether an earlier attempt may have delivered it, with only the response lost."""
        return self.tries > 1


@dataclass(frozen=True, slots=True)
class Loss:
    """A person whose rank got worse through another person's score."""

    standing: Standing
    rank: int
    """The current rank; the standing has the previous one."""


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of one new score on the standings of its GPU type."""

    score: Score
    before: tuple[Standing, ...]
    after: tuple[Standing, ...]

    @property
    def is_record(self) -> bool:
        """Return whether it is the first score, or certainly faster than the previous best."""
        if not self.before:
            return True
        best = self.before[0].score.value
        faster = self.score.value.time_ns < best.time_ns
        return faster and not indistinguishable(self.score.value, best)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Return who among the first ten has a worse rank now, best ranks first."""
        now = {each.score.person: each.rank for each in self.after}
        return tuple(
            Loss(each, now[each.score.person])
            for each in self.before
            if each.rank <= WORTH_TELLING and now[each.score.person] > each.rank
        )


def change_by(
    submission: SubmissionId, scores: Iterable[Score], others: Iterable[Entrant] = ()
) -> Change | None:
    """Return the effect of a submission's score; None when it is not among the scores.

    `scores` are all those of some people, and `others` are the remaining people.
    """
    everything, rest = tuple(scores), tuple(others)
    new = next((each for each in everything if each.submission == submission), None)
    if new is None:
        return None
    earlier = entrants(each for each in everything if each.submission != submission)
    return Change(
        new, rank_entrants([*rest, *earlier]), rank_entrants([*rest, *entrants(everything)])
    )


def closes_soon(board: Board, now: datetime) -> bool:
    """Return whether it is time to remind of the board's deadline."""
    return board.deadline is not None and now <= board.deadline <= now + REMIND_BEFORE


def record_news(change: Change, board: Board, addressee: str) -> Notification:
    """Return the notification of a board's new best time."""
    new = change.score
    words = f"Record on {board.name} ({new.gpu}): {new.person_name} takes {_time(new)}"
    if change.before:
        best = change.before[0].score
        factor = best.value.time_ns / new.value.time_ns
        words += f", {factor:.2f}x faster than {best.person_name} ({_time(best)})"
    key = f"record {new.submission} {new.gpu} {addressee}"
    return Notification(key, NewsKind.RECORD, addressee, board.id, f"{words}.")


def loss_news(loss: Loss, change: Change, board: Board, addressee: str) -> Notification:
    """Return the notification that somebody else has taken the person's rank."""
    new, own = change.score, loss.standing.score
    words = (
        f"You went from rank {loss.standing.rank} to {loss.rank} on {board.name} ({new.gpu}): "
        f"{new.person_name} takes {_time(new)}, you take {_time(own)}."
    )
    key = f"lost-rank {new.submission} {new.gpu} {addressee}"
    return Notification(key, NewsKind.LOST_RANK, addressee, board.id, words)


def deadline_words(deadline: datetime) -> str:
    """Return a deadline as in notifications, where front ends can localize it."""
    return f"at {show_deadline(deadline)}"


def is_current(news: Notification, board: Board) -> bool:
    """Return whether the deadline in a notification is still the board's; others stay true."""
    if news.kind is not NewsKind.DEADLINE:
        return True
    if board.deadline is None:
        return False
    return news.key == deadline_news(board, board.deadline, news.addressee).key


def deadline_news(board: Board, deadline: datetime, addressee: str) -> Notification:
    """Return the notification of a board that closes soon; a moved deadline is announced again."""
    words = f"Leaderboard {board.name} closes {deadline_words(deadline)}."
    key = f"deadline {board.id} {deadline.timestamp():.0f} {addressee}"
    return Notification(key, NewsKind.DEADLINE, addressee, board.id, words)


def _time(score: Score) -> str:
    return show_time(score.value.time_ns, score.value.half_width_ns)

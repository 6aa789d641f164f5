"""News that people and rooms may ask for: what is news at all, and in which words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.board import Board
from bot.domain.ids import BoardId, NewsId, SubmissionId
from bot.domain.scoring import Entrant, Score, Standing, entrants, indistinguishable, rank_entrants
from bot.domain.times import show_deadline, show_time

WORTH_TELLING = 10
"""Anyone who loses a rank up to this one may be told."""
REMIND_BEFORE = timedelta(hours=24)


class NewsKind(StrEnum):
    """What one may ask to be told of; nobody is told without asking."""

    DEADLINE = "deadline"
    """A board closes within a day."""
    LOST_RANK = "lost-rank"
    """Somebody else has taken one's rank among the first ten."""
    RECORD = "record"
    """A board has a new best time."""


@dataclass(frozen=True, slots=True)
class Notification:
    """Something for one addressee, such as `discord:17`; no two of one `key` are ever kept."""

    key: str
    kind: NewsKind
    addressee: str
    board: BoardId
    text: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """News in the hands of a process that is to deliver it."""

    id: NewsId
    news: Notification
    tries: int
    """How often it was claimed, this time included."""

    @property
    def doubtful(self) -> bool:
        """Whether an earlier try may have delivered it, and only the answer was lost."""
        return self.tries > 1


@dataclass(frozen=True, slots=True)
class Loss:
    """Somebody whose rank is worse by a score of somebody else."""

    standing: Standing
    rank: int
    """The rank now; the standing has the one before."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one new score has done to the standings of its GPU type."""

    score: Score
    before: tuple[Standing, ...]
    after: tuple[Standing, ...]

    @property
    def is_record(self) -> bool:
        """Whether it is the first score, or faster than the best one beyond doubt."""
        if not self.before:
            return True
        best = self.before[0].score.value
        faster = self.score.value.time_ns < best.time_ns
        return faster and not indistinguishable(self.score.value, best)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Who of the first ten has a worse rank now, best ranks first."""
        now = {each.score.person: each.rank for each in self.after}
        return tuple(
            Loss(each, now[each.score.person])
            for each in self.before
            if each.rank <= WORTH_TELLING and now[each.score.person] > each.rank
        )


def change_by(
    submission: SubmissionId, scores: Iterable[Score], others: Iterable[Entrant] = ()
) -> Change | None:
    """What the score of a submission has changed; None when it is not among the scores.

    `scores` are all those of some people, and `others` is everybody else.
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
    """Whether it is time to remind of the board's deadline."""
    return board.deadline is not None and now <= board.deadline <= now + REMIND_BEFORE


def record_news(change: Change, board: Board, addressee: str) -> Notification:
    """That a board has a new best time."""
    new = change.score
    words = f"Record on {board.name} ({new.gpu}): {new.person_name} needs {_time(new)}"
    if change.before:
        best = change.before[0].score
        factor = best.value.time_ns / new.value.time_ns
        words += f", {factor:.2f} times as fast as the {_time(best)} of {best.person_name}"
    key = f"record {new.submission} {new.gpu} {addressee}"
    return Notification(key, NewsKind.RECORD, addressee, board.id, f"{words}.")


def loss_news(loss: Loss, change: Change, board: Board, addressee: str) -> Notification:
    """That somebody else has taken one's rank."""
    new, own = change.score, loss.standing.score
    words = (
        f"You went from rank {loss.standing.rank} to {loss.rank} on {board.name} ({new.gpu}): "
        f"{new.person_name} needs {_time(new)}, you need {_time(own)}."
    )
    key = f"lost-rank {new.submission} {new.gpu} {addressee}"
    return Notification(key, NewsKind.LOST_RANK, addressee, board.id, words)


def deadline_words(deadline: datetime) -> str:
    """A deadline as it stands in news, for doors which can show it in the reader's own zone."""
    return f"at {show_deadline(deadline)}"


def is_current(news: Notification, board: Board) -> bool:
    """Whether the deadline that news tells of is still the board's; other news stays true."""
    if news.kind is not NewsKind.DEADLINE:
        return True
    if board.deadline is None:
        return False
    return news.key == deadline_news(board, board.deadline, news.addressee).key


def deadline_news(board: Board, deadline: datetime, addressee: str) -> Notification:
    """That a board is about to close; a deadline that is moved is told again."""
    words = f"Leaderboard {board.name} closes {deadline_words(deadline)}."
    key = f"deadline {board.id} {deadline.timestamp():.0f} {addressee}"
    return Notification(key, NewsKind.DEADLINE, addressee, board.id, words)


def _time(score: Score) -> str:
    return show_time(score.value.time_ns, score.value.half_width_ns)

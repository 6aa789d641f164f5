"""Notifications for people and channels: when to send them, and their texts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.accounts import Person
from bot.domain.board import Board
from bot.domain.competition import Competition
from bot.domain.finals import Final
from bot.domain.ids import BoardId, NotificationId, SubmissionId
from bot.domain.scoring import (
    Entrant,
    Score,
    Standing,
    by_submission_time,
    entrants,
    leads,
    rank_entrants,
    records,
)
from bot.domain.times import show_deadline, show_score, show_speed_up

LOWEST_ANNOUNCED_RANK = 10
"""The lowest rank whose loss may be announced."""
MOST_FINAL_ROWS = 10
"""How many places of a final are in its notification."""
REMIND_BEFORE = timedelta(hours=24)


class NotificationKind(StrEnum):
    """What a notification is about; people get what they subscribed to, and always `ACCOUNT`."""

    ACCOUNT = "account"
    """An admin has changed the person's account."""
    COMPETITION = "competition"
    """A competition opens or closes."""
    DEADLINE = "deadline"
    """A board closes within a day."""
    LOST_RANK = "lost-rank"
    """Another person's score pushed the person down from a rank among the first ten."""
    RECORD = "record"
    """A board has a new best time, or a final has ended."""
    RESULT = "result"
    """A run of the person that took two minutes or more has ended."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A message for one addressee, such as `discord:17`; at most one per `key` is stored."""

    key: str
    kind: NotificationKind
    addressee: str
    board: BoardId | None
    """Only people who see this board get it; None if it is about the addressee's account."""
    text: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification held by a process that delivers it."""

    id: NotificationId
    notification: Notification
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
class StandingsChange:
    """The effect of one new score on the standings of its GPU type."""

    score: Score
    before: tuple[Standing, ...]
    after: tuple[Standing, ...]
    record: Score | None
    """The record until then; None for the first score."""

    @property
    def is_record(self) -> bool:
        """Return whether it is the first score, or ahead of the record until then."""
        return self.record is None or leads(self.score, self.record)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Return the ranks among the first ten that people lost, best first."""
        now = {each.score.person: each.rank for each in self.after}
        return tuple(
            Loss(each, now[each.score.person])
            for each in self.before
            if each.rank <= LOWEST_ANNOUNCED_RANK and now[each.score.person] > each.rank
        )


def standings_change(
    submission: SubmissionId,
    scores: Iterable[Score],
    others: Iterable[Entrant] = (),
    course: Iterable[Score] = (),
) -> StandingsChange | None:
    """Return the effect of a submission's score; None when it is not among the scores.

    `scores` has every score of some people, `others` has the best score of everyone else, and
    `course` has every record.
    """
    all_scores, rest = tuple(scores), tuple(others)
    new = next((each for each in all_scores if each.submission == submission), None)
    if new is None:
        return None
    since = by_submission_time(new)
    until_then = [each for each in (*course, *all_scores) if by_submission_time(each) < since]
    earlier = entrants(each for each in all_scores if each.submission != submission)
    return StandingsChange(
        new,
        rank_entrants([*rest, *earlier]),
        rank_entrants([*rest, *entrants(all_scores)]),
        next(reversed(records(until_then)), None),
    )


def name_notification(person: Person, reason: str, number: str) -> Notification:
    """Return the notification that a person's name was reset; `number` makes its key unique."""
    text = (
        f"An admin has reset your name {person.name} ({reason}). You are shown as {person.handle} "
        "until you choose another name."
    )
    key = f"name {person.id} {number}"
    return Notification(key, NotificationKind.ACCOUNT, person.identity, None, text)


def closes_soon(board: Board, now: datetime) -> bool:
    """Return whether to send reminders of the board's deadline now."""
    return board.deadline is not None and now <= board.deadline <= now + REMIND_BEFORE


def record_notification(change: StandingsChange, board: Board, addressee: str) -> Notification:
    """Return the notification of a board's new best time."""
    new, old = change.score, change.record
    text = f"Record on {board.name} ({new.gpu}): {new.person_name} takes {show_score(new.value)}"
    if old is not None:
        factor = show_speed_up(old.value, new.value)
        text += f", {factor} as fast as {old.person_name} ({show_score(old.value)})"
    key = f"record {new.submission} {new.gpu} {addressee}"
    return Notification(key, NotificationKind.RECORD, addressee, board.id, f"{text}.")


def final_notification(final: Final, board: Board, addressee: str) -> Notification:
    """Return the notification of the result of a final, with its first places."""
    rows = [
        f"{each.rank}. {each.person_name} {show_score(each.value)}"
        for each in (final.rows or ())[:MOST_FINAL_ROWS]
    ]
    text = f"Final of {board.name} ({final.gpu}): {'; '.join(rows)}."
    key = f"final {final.id} {addressee}"
    return Notification(key, NotificationKind.RECORD, addressee, board.id, text)


def loss_notification(
    loss: Loss, change: StandingsChange, board: Board, addressee: str
) -> Notification:
    """Return the notification for a person whose rank got worse."""
    new, own = change.score, loss.standing.score
    text = (
        f"You went from rank {loss.standing.rank} to {loss.rank} on {board.name} ({new.gpu}): "
        f"{new.person_name} takes {show_score(new.value)}, you take {show_score(own.value)}."
    )
    key = f"lost-rank {new.submission} {new.gpu} {addressee}"
    return Notification(key, NotificationKind.LOST_RANK, addressee, board.id, text)


def deadline_words(deadline: datetime) -> str:
    """Return a deadline as in notifications, where front ends can localize it."""
    return f"at {show_deadline(deadline)}"


def is_current(notification: Notification, board: Board) -> bool:
    """Return False for a reminder of a deadline that has changed; True for all others."""
    if notification.kind is not NotificationKind.DEADLINE:
        return True
    if board.deadline is None:
        return False
    return (
        notification.key == deadline_notification(board, board.deadline, notification.addressee).key
    )


def deadline_notification(board: Board, deadline: datetime, addressee: str) -> Notification:
    """Return the notification of a board that closes soon; a moved deadline is announced again."""
    text = f"Leaderboard {board.name} closes {deadline_words(deadline)}."
    key = f"deadline {board.id} {deadline.timestamp():.0f} {addressee}"
    return Notification(key, NotificationKind.DEADLINE, addressee, board.id, text)


def opening_notification(competition: Competition, board: Board, addressee: str) -> Notification:
    """Return the notification of a competition that has opened, with one of its boards."""
    count = len(competition.boards)
    text = f"Competition {competition.name} is open"
    if all(each.rules.opens_at is None and _is_public(each) for each in competition.boards):
        text += f", with {count} board{'' if count == 1 else 's'}"
        if competition.closes_at is not None:
            text += f", until {show_deadline(competition.closes_at)}"
    key = f"opening {competition.id} {competition.opens_at.timestamp():.0f} {addressee}"
    return Notification(key, NotificationKind.COMPETITION, addressee, board.id, f"{text}.")


def _is_public(board: Board) -> bool:
    return board.access.admits(frozenset())


def closing_notification(competition: Competition, board: Board, addressee: str) -> Notification:
    """Return the notification of a competition that has closed, with one of its boards."""
    text = f"Competition {competition.name} has closed. Runs that are still queued will count."
    closed_at = 0.0 if competition.closes_at is None else competition.closes_at.timestamp()
    key = f"closing {competition.id} {closed_at:.0f} {addressee}"
    return Notification(key, NotificationKind.COMPETITION, addressee, board.id, text)

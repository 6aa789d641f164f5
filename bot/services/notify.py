"""Determines which notifications to send, and to whom.

They are about records, lost ranks, deadlines and competitions.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import structlog

from bot.domain import notifications
from bot.domain.board import NOBODY, Board, Viewer
from bot.domain.errors import StoreError
from bot.domain.notifications import Notification, NotificationKind, StandingsChange
from bot.domain.records import UnannouncedScore
from bot.ports import Clock, Store

_log = structlog.get_logger(__name__)


async def run_notifications(
    store: Store, clock: Clock, stop: asyncio.Event, *, every_s: float = 5.0
) -> None:
    """Put new notifications into the outbox every `every_s`, until `stop` is set."""
    while not stop.is_set():
        try:
            await announce_scores(store)
            await announce_deadlines(store, clock)
            await announce_competitions(store, clock)
        except StoreError as error:
            _log.warning("notifications have to wait", action="news-waits", error=str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stop.wait()


async def announce_scores(store: Store) -> None:
    """Put the notifications of every new score into the outbox; processes may share this work."""
    while scores := await store.outbox.unannounced():
        for index, score in enumerate(scores):
            to_send = await _notifications_for(store, score, later=scores[index + 1 :])
            await store.outbox.mark_announced(score.job, to_send)


async def _notifications_for(
    store: Store, score: UnannouncedScore, later: Sequence[UnannouncedScore]
) -> list[Notification]:
    """Return the notifications for one score, from the standings without the later scores."""
    board = await store.boards.get(score.board)
    records, losses = [await store.listeners.to(kind) for kind in _SCORE_KINDS]
    if board is None or board.task_version != score.task_version or not (records or losses):
        return []
    change = await _change_by(store, score, later)
    if change is None:
        return []
    return [
        *await _records(store, change, board, records),
        *await _losses(store, change, board, losses),
    ]


async def _change_by(
    store: Store, score: UnannouncedScore, later: Sequence[UnannouncedScore]
) -> StandingsChange | None:
    """Compute how this score changed the standings.

    All scores are read only for people with this or a later score; for others, only the best one.
    """
    leaderboard = score.task_version, score.gpu
    later_here = [each for each in later if (each.task_version, each.gpu) == leaderboard]
    later_submissions = {each.submission for each in later_here}
    people = {each.person for each in (score, *later_here)}
    everyone = await store.results.entrants(*leaderboard)
    own = [
        own_score
        for each in people
        for own_score in await store.results.scores_of(each, *leaderboard)
    ]
    course = await store.results.score_history(*leaderboard, 0)
    return notifications.standings_change(
        score.submission,
        [each for each in own if each.submission not in later_submissions],
        [each for each in everyone if each.best.person not in people],
        [each for each in course.scores if each.submission not in later_submissions],
    )


_SCORE_KINDS = (NotificationKind.RECORD, NotificationKind.LOST_RANK)


async def _records(
    store: Store, change: StandingsChange, board: Board, listeners: Sequence[str]
) -> list[Notification]:
    """Notify every subscriber except the person who set the record."""
    if not change.is_record:
        return []
    holder = await store.people.get(change.score.person)
    own = None if holder is None else holder.identity
    return [
        notifications.record_notification(change, board, each) for each in listeners if each != own
    ]


async def _losses(
    store: Store, change: StandingsChange, board: Board, listeners: Sequence[str]
) -> list[Notification]:
    """Notify each subscriber who lost a rank."""
    to_send = []
    for loss in change.losses:
        person = await store.people.get(loss.standing.score.person)
        if person is not None and person.identity in listeners:
            to_send.append(notifications.loss_notification(loss, change, board, person.identity))
    return to_send


async def announce_deadlines(store: Store, clock: Clock) -> None:
    """Remind each subscriber once of the boards that close within a day."""
    listeners = await store.listeners.to(NotificationKind.DEADLINE)
    if not listeners:
        return
    now = clock.now()
    for board in await store.boards.all():
        deadline = board.deadline
        if board.rules.opens_at is not None:
            continue  # its deadline is announced only once it has opened
        if deadline is not None and notifications.closes_soon(board, now):
            await store.outbox.put(
                [notifications.deadline_notification(board, deadline, each) for each in listeners]
            )


async def announce_competitions(store: Store, clock: Clock) -> None:
    """Notify each subscriber once of each competition that has opened or closed.

    What was announced is stored together with the notifications, so that a process that is killed
    has stored both or neither.
    """
    now = clock.now()
    for competition in await store.competitions.unannounced():
        opened = [each for each in competition.boards if each.rules.opens_at is None]
        if not (competition.has_opened(now) and opened):
            continue
        # The board decides who may read it: one that everyone sees, if there is any.
        board = next((each for each in opened if each.access.admits(frozenset())), opened[0])
        opened_at, closed_at = competition.opens_at, competition.closes_at
        if competition.opening_announced is None:
            async with store.transaction() as tx:
                if await tx.competitions.announce_opening(competition.id, opened_at):
                    notice = partial(notifications.opening_notification, competition, board)
                    await _announce(tx, notice)
        has_closed = competition.has_closed(now) and competition.closing_announced != closed_at
        if has_closed and closed_at is not None:
            async with store.transaction() as tx:
                if await tx.competitions.announce_closing(competition.id, closed_at):
                    notice = partial(notifications.closing_notification, competition, board)
                    await _announce(tx, notice)


async def _announce(tx: Store, notice: Callable[[str], Notification]) -> None:
    listeners = await tx.listeners.to(NotificationKind.COMPETITION)
    await tx.outbox.put([notice(each) for each in listeners])


async def still_wanted(
    store: Store, clock: Clock, notification: Notification, credentials: frozenset[str]
) -> bool:
    """Return whether the addressee still wants the notification and sees the board.

    `credentials` are the addressee's now; for a channel, those of everyone who reads it.
    """
    if notification.board is None:
        return True
    board = await store.boards.get(notification.board)
    if board is None or notification.kind not in await store.listeners.kinds(
        notification.addressee
    ):
        return False
    if not notifications.is_current(notification, board):
        return False
    if notification.kind is NotificationKind.DEADLINE and not board.is_open(clock.now()):
        return False
    person = await store.people.find(notification.addressee)
    return board.visible_to(Viewer(NOBODY if person is None else person.id, credentials))


async def set_notifications(
    store: Store, addressee: str, settings: Mapping[NotificationKind, bool | None]
) -> frozenset[NotificationKind]:
    """Change which kinds an addressee gets; None leaves a kind as it is. Return all that are on."""
    kinds = set(await store.listeners.kinds(addressee))
    for kind, enabled in settings.items():
        if enabled is not None:
            (kinds.add if enabled else kinds.discard)(kind)
    await store.listeners.listen(addressee, frozenset(kinds))
    return frozenset(kinds)

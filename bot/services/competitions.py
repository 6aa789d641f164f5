"""Competitions: their overall ranking, closing and extending them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from weakref import WeakKeyDictionary

from bot.domain.acceptance import not_yet_open
from bot.domain.board import NOBODY, Board, SeasonRules, Viewer
from bot.domain.competition import (
    Competition,
    CompetitionStandings,
    OverallEntry,
    PointsRule,
    rank_overall,
)
from bot.domain.errors import UserError, unknown_name
from bot.domain.times import show_deadline
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.cache import SharedCache
from bot.services.standings import LAG_S, leaderboard

_MOST_CACHED = 32


@dataclass(frozen=True, slots=True)
class _Overall:
    """An overall ranking, and the change counters of its leaderboards."""

    moves: tuple[int, ...]
    entries: tuple[OverallEntry, ...]


_CACHES: WeakKeyDictionary[Store, SharedCache[_Overall]] = WeakKeyDictionary()


async def visible_competitions(
    store: Store, clock: Clock, viewer: Viewer
) -> tuple[Competition, ...]:
    """Return the competitions that the viewer may know, by name, as the viewer sees them."""
    now, found = clock.now(), await store.competitions.all()
    return tuple(_as_seen(each, viewer, now) for each in found if each.announced_to(viewer))


async def find_competition(store: Store, clock: Clock, viewer: Viewer, name: str) -> Competition:
    """Return the competition of this name; UserError `unknown-competition` with the nearest names.

    Before it opens, people other than its creator and admins see its name and opening date alone.
    """
    found = await store.competitions.find(name)
    if found is None or not found.announced_to(viewer):
        known = await visible_competitions(store, clock, viewer)
        raise unknown_name("competition", name, [each.name for each in known])
    return _as_seen(found, viewer, clock.now())


def _as_seen(competition: Competition, viewer: Viewer, now: datetime) -> Competition:
    """Return what the viewer may know; of a board that has not opened, name and date alone."""
    if not (competition.has_opened(now) or competition.belongs_to(viewer)):
        return replace(competition, creator=NOBODY, description="", points=PointsRule(), boards=())
    boards = [each for each in competition.boards if each.announced_to(viewer)]
    return replace(
        competition,
        boards=tuple(each if each.visible_to(viewer) else _announced(each) for each in boards),
    )


def _announced(board: Board) -> Board:
    return replace(board, gpus=(), deadline=None, pins=(), rules=SeasonRules(board.rules.opens_at))


async def competition_standings(
    store: Store, clock: Clock, viewer: Viewer, name: str
) -> CompetitionStandings:
    """Return a competition with its overall ranking on the boards that the viewer sees."""
    competition = await find_competition(store, clock, viewer, name)
    leaderboards = tuple(
        (board, gpu)
        for board in competition.boards
        if board.visible_to(viewer)
        for gpu in board.gpus
    )
    entries = await _overall(store, competition.points, leaderboards)
    return CompetitionStandings(competition, leaderboards, entries)


async def _overall(
    store: Store, rule: PointsRule, leaderboards: tuple[tuple[Board, str], ...]
) -> tuple[OverallEntry, ...]:
    """Return the overall ranking, which is computed once for all who request it."""
    found = [await leaderboard(store, board.task_version, gpu) for board, gpu in leaderboards]
    moves = tuple(each.moves for each in found)

    async def make() -> _Overall:
        ranked = [each.entries for each in found]
        return _Overall(moves, await asyncio.to_thread(rank_overall, ranked, rule))

    cache = _CACHES.setdefault(store, SharedCache(_MOST_CACHED))
    key = (rule, *((board.task_version, gpu) for board, gpu in leaderboards))
    ranking = await cache.get(
        key, make, current=lambda cached, _: cached.moves == moves, lag_s=LAG_S
    )
    return ranking.entries


async def own_competition(store: Store, clock: Clock, viewer: Viewer, name: str) -> Competition:
    """Return a competition that the viewer may change, together with all of its boards."""
    competition = await find_competition(store, clock, viewer, name)
    owns_boards = all(each.belongs_to(viewer) for each in competition.boards)
    if not (competition.belongs_to(viewer) and owns_boards):
        raise UserError("not-yours", f"competition {name!r} belongs to another person")
    return competition


async def close_competition(store: Store, clock: Clock, viewer: Viewer, name: str) -> Competition:
    """Close every open board of a competition now; UserError when none is open."""
    competition, now = await own_competition(store, clock, viewer, name), clock.now()
    if not competition.has_opened(now):
        raise not_yet_open(f"competition {name!r}", competition.opens_at)
    return await _set_deadlines(
        store,
        viewer,
        competition,
        deadline=now,
        applies=lambda board: board.is_open(now) and board.deadline != now,
    )


async def extend_competition(
    store: Store, clock: Clock, viewer: Viewer, name: str, *, until: datetime
) -> Competition:
    """Let every board that closes earlier accept submissions until this aware time.

    Boards that are closed already open again. UserError when no board closes earlier.
    """
    competition = await own_competition(store, clock, viewer, name)
    if until <= clock.now():
        raise UserError("bad-deadline", "the deadline is in the past; choose a later one")
    late = [each for each in competition.boards if (each.rules.opens_at or until) > until]
    if late:
        words = f"leaderboard {late[0].name!r} opens later than that; choose a later deadline"
        raise UserError("bad-deadline", words)
    return await _set_deadlines(
        store,
        viewer,
        competition,
        deadline=until,
        applies=lambda board: board.deadline is not None and board.deadline < until,
    )


async def _set_deadlines(
    store: Store,
    viewer: Viewer,
    competition: Competition,
    *,
    deadline: datetime,
    applies: Callable[[Board], bool],
) -> Competition:
    """Set the deadline of the boards to which it applies, and record it, in one transaction."""
    subject = f"competition {competition.name}"
    reason = f"deadline {show_deadline(deadline)}"
    async with audited(store, viewer.person, "set-deadlines", subject, reason=reason) as tx:
        found = await tx.competitions.find(competition.name)
        if found is not None and not all(each.belongs_to(viewer) for each in found.boards):
            raise UserError("not-yours", f"a board of {subject} belongs to another person")
        boards = [] if found is None else [each for each in found.boards if applies(each)]
        if not boards:
            words = f"no board of {subject} would close at another time; nothing was changed"
            raise UserError("unchanged", words)
        for each in boards:
            await tx.boards.configure(each.id, each.gpus, deadline)
        changed = await tx.competitions.find(competition.name)
    return competition if changed is None else changed

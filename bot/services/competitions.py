"""Competitions: their overall ranking, their dates, and deleting them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from weakref import WeakKeyDictionary

from bot.domain.acceptance import closes_early, not_yet_open
from bot.domain.board import NOBODY, Board, SeasonRules, Viewer
from bot.domain.competition import (
    Competition,
    CompetitionStandings,
    NewCompetition,
    OverallEntry,
    PointsRule,
    rank_overall,
)
from bot.domain.errors import UserError, unknown_name
from bot.domain.names import skeleton, split_handle
from bot.domain.times import show_deadline
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.boards import BoardArchive
from bot.services.cache import SharedCache
from bot.services.standings import LAG_S, leaderboard

_MOST_CACHED = 32
_MOST_NAMED = 200
"""The most names with which an unknown one is compared."""


@dataclass(frozen=True, slots=True)
class _Overall:
    """An overall ranking, and the change counters of its leaderboards."""

    revisions: tuple[int, ...]
    entries: tuple[OverallEntry, ...]


_CACHES: WeakKeyDictionary[Store, SharedCache[_Overall]] = WeakKeyDictionary()


async def visible_competitions(
    store: Store,
    clock: Clock,
    viewer: Viewer,
    *,
    after: str | None = "",
    limit: int | None = None,
) -> tuple[Competition, ...]:
    """Return at most `limit` competitions that the viewer may know of, as the viewer sees them.

    They are sorted by name, after the name `after`; if it is None, by opening date, the latest
    first.
    """
    now, found = clock.now(), await store.competitions.known_to(viewer, after=after, limit=limit)
    return tuple(_as_seen(each, viewer, now) for each in found)


async def find_competition(store: Store, clock: Clock, viewer: Viewer, name: str) -> Competition:
    """Return the competition of this name; UserError `unknown-competition` with the nearest names.

    Before it opens, people other than its creator and admins see only its name and opening date.
    """
    found = await store.competitions.find(name)
    if found is None or not found.announced_to(viewer):
        known = await store.competitions.known_to(viewer, after=None, limit=_MOST_NAMED)
        raise unknown_name("competition", name, [each.name for each in known])
    return _as_seen(found, viewer, clock.now())


def _as_seen(competition: Competition, viewer: Viewer, now: datetime) -> Competition:
    """Return what the viewer may know; of a board that has not opened, only name and date."""
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
    """Return the overall ranking, which is computed once for all callers."""
    found = [await leaderboard(store, board.task_version, gpu) for board, gpu in leaderboards]
    revisions = tuple(each.revision for each in found)

    async def make() -> _Overall:
        ranked = [each.entries for each in found]
        entries = await asyncio.to_thread(rank_overall, ranked, rule)
        return _Overall(revisions, await _told_apart(store, entries))

    cache = _CACHES.setdefault(store, SharedCache(_MOST_CACHED))
    key = (rule, *((board.task_version, gpu) for board, gpu in leaderboards))
    ranking = await cache.get(
        key, make, current=lambda cached, _: cached.revisions == revisions, lag_s=LAG_S
    )
    return ranking.entries


async def _told_apart(store: Store, entries: tuple[OverallEntry, ...]) -> tuple[OverallEntry, ...]:
    """Return the entries, with handles where names look alike, even on different boards."""
    names = [split_handle(each.person_name) for each in entries]
    alike = Counter(skeleton(chosen) for chosen, _ in names)
    found = []
    for each, (chosen, handle) in zip(entries, names, strict=True):
        person = None
        if not handle and alike[skeleton(chosen)] > 1:
            person = await store.people.get(each.person)
        found.append(each if person is None else replace(each, person_name=person.distinct_name))
    return tuple(found)


async def own_competition(store: Store, clock: Clock, viewer: Viewer, name: str) -> Competition:
    """Return a competition that the viewer may change, together with all of its boards."""
    competition = await find_competition(store, clock, viewer, name)
    owns_boards = all(each.belongs_to(viewer) for each in competition.boards)
    if not (competition.belongs_to(viewer) and owns_boards):
        raise UserError("not-yours", f"competition {name!r} belongs to another person")
    return competition


@dataclass(frozen=True, slots=True)
class BoardDates:
    """When a board opens and closes; None: it is open already, or has no deadline."""

    opens_at: datetime | None
    deadline: datetime | None


async def close_competition(store: Store, clock: Clock, viewer: Viewer, name: str) -> Competition:
    """Close every open board of a competition now; UserError when none is open."""
    competition, now = await own_competition(store, clock, viewer, name), clock.now()
    if not competition.has_opened(now):
        raise not_yet_open(f"competition {name!r}", competition.opens_at)

    def closed(board: Board) -> BoardDates:
        closes = board.is_open(now) and board.deadline != now
        return BoardDates(board.rules.opens_at, now if closes else board.deadline)

    reason = f"deadline {show_deadline(now)}"
    return await _set_dates(store, clock, viewer, competition, choose=closed, reason=reason)


async def extend_competition(
    store: Store, clock: Clock, viewer: Viewer, name: str, *, until: datetime
) -> Competition:
    """Let every board that closes earlier accept submissions until this aware time.

    Boards that have closed open again. UserError when no board closes earlier.
    """
    competition = await own_competition(store, clock, viewer, name)
    if until <= clock.now():
        raise UserError("bad-deadline", "the deadline is in the past; choose a later one")
    for each in competition.boards:
        if each.rules.opens_at is not None and until <= each.rules.opens_at:
            raise closes_early(each.name, each.rules.opens_at)

    def extended(board: Board) -> BoardDates:
        earlier = board.deadline is not None and board.deadline < until
        return BoardDates(board.rules.opens_at, until if earlier else board.deadline)

    reason = f"deadline {show_deadline(until)}"
    return await _set_dates(store, clock, viewer, competition, choose=extended, reason=reason)


async def change_dates(
    store: Store, clock: Clock, viewer: Viewer, name: str, *, dates: Mapping[str, BoardDates]
) -> Competition:
    """Change when the named boards of a competition open and close; the others stay.

    UserError when nothing differs, or a new deadline has passed.
    """
    competition, now = await own_competition(store, clock, viewer, name), clock.now()

    def chosen(board: Board) -> BoardDates:
        wanted = dates.get(board.name, BoardDates(board.rules.opens_at, board.deadline))
        if wanted.deadline not in {None, board.deadline} and wanted.deadline <= now:
            words = f"the deadline of {board.name!r} is in the past; choose a later one"
            raise UserError("bad-deadline", words)
        return wanted

    return await _set_dates(store, clock, viewer, competition, choose=chosen, reason="dates")


async def _set_dates(
    store: Store,
    clock: Clock,
    viewer: Viewer,
    competition: Competition,
    *,
    choose: Callable[[Board], BoardDates],
    reason: str,
) -> Competition:
    """Set the dates that are chosen for each board, and record it, in one transaction."""
    now, subject = clock.now(), f"competition {competition.name}"
    async with audited(store, viewer.person, "set-deadlines", subject, reason=reason) as tx:
        await tx.competitions.lock(competition.id)
        found = await tx.competitions.find(competition.name)
        if found is None or found.id != competition.id:
            raise UserError("unknown-competition", f"{subject} was deleted in the meantime")
        if not all(each.belongs_to(viewer) for each in found.boards):
            raise UserError("not-yours", f"a board of {subject} belongs to another person")
        boards = [_with_dates(each, choose(each), now) for each in found.boards]
        if boards == [*found.boards]:
            words = f"no board of {subject} would close at another time; nothing was changed"
            raise UserError("unchanged", words)
        for before, each in zip(found.boards, boards, strict=True):
            if each.deadline != before.deadline:
                await tx.boards.configure(each.id, each.gpus, each.deadline)
            if each.rules != before.rules:
                await tx.boards.set_rules(each.id, each.rules)
        if [each.rules for each in boards] == [each.rules for each in found.boards]:
            return replace(found, boards=tuple(boards))
        new = NewCompetition(
            found.name, found.creator, found.description, found.points,
            _opening(found, boards, now), tuple(each.id for each in boards),
        )  # fmt: skip
        return await tx.competitions.put(new, found.id)


def _with_dates(board: Board, dates: BoardDates, now: datetime) -> Board:
    """Return the board with these dates; UserError when it would close before it opens."""
    rules = replace(board.rules, opens_at=dates.opens_at).at(now)
    changed = replace(board, rules=rules, deadline=dates.deadline)
    if changed != board and rules.opens_at and dates.deadline and dates.deadline <= rules.opens_at:
        raise closes_early(board.name, rules.opens_at)
    return changed


def _opening(competition: Competition, boards: Sequence[Board], now: datetime) -> datetime:
    """Return when a competition opens: with its first board; if one is open, not later than now."""
    dates = [each.rules.opens_at for each in boards]
    if all(dates):
        return min(each for each in dates if each)
    return competition.opens_at if competition.has_opened(now) else now


def require_typed(name: str, typed: str) -> None:
    """Raise UserError unless the person has typed the name of the competition to delete."""
    if typed != name:
        words = f"you typed {typed!r}, which is not the competition's name; nothing was deleted"
        raise UserError("name-differs", words)


async def delete_competition(
    store: Store,
    clock: Clock,
    viewer: Viewer,
    name: str,
    *,
    reason: str = "",
    archives: Collection[str] | None = None,
) -> Competition:
    """Delete a competition; its boards, with all submissions and scores, stay as boards.

    With `archives`, the states of the board archives that the person has received, its boards are
    deleted too. UserError `stale-match` for a board that has none there or has changed since.
    """
    await find_competition(store, clock, viewer, name)
    competition = await store.competitions.find(name)
    if competition is None:
        raise unknown_name("competition", name, ())
    owned = archives is None or all(each.belongs_to(viewer) for each in competition.boards)
    if not (competition.belongs_to(viewer) and owned):
        words = f"competition {name!r}, or a board of it, belongs to another person"
        raise UserError("not-yours", words)
    to_delete = () if archives is None else await _archived(store, competition, archives)
    async with audited(
        store, viewer.person, "delete-competition", f"competition {name}", reason=reason
    ) as tx:
        for each in to_delete:
            await tx.boards.delete(each.board.id, each.submissions)
            await tx.audit.record(viewer.person, "delete-board", f"board {each.board.name}", reason)
        await tx.competitions.delete(competition.id)  # already gone if its last board was deleted
    return competition


async def _archived(
    store: Store, competition: Competition, archives: Collection[str]
) -> list[BoardArchive]:
    """Return the competition's boards as they are in these archives; UserError if one differs."""
    found = []
    for board in competition.boards:
        now = BoardArchive(board, (), len(await store.submissions.to(board.id)))
        if now.state not in archives:
            raise UserError(
                "stale-match",
                f"the archive of leaderboard {board.name!r} was not downloaded, or the board has "
                "changed since; download it and try again; nothing was deleted",
            )
        found.append(now)
    return found

"""Remembers what each leaderboard looked like, until the store says that it has changed.

One number is read each time, and all the rest only when it has grown. Who asks while another reads
it anew gets what there was a moment before, and so does who asks for a large one soon after that;
who asks for the newest gets what there is.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from bot.domain.board import TaskVersion
from bot.domain.disclosure import PUBLIC_STAGES, disclosed
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId
from bot.domain.ranking import rank_entrants
from bot.domain.reference import Reference
from bot.domain.score import Standing
from bot.ports import Refusal, Store

Key = TypeVar("Key")
Value = TypeVar("Value")

MOST = 256
"""Leaderboards, and task versions, that are remembered; those asked for last."""

OLDEST_S = 2.0
"""How long a leaderboard that has moved may be given while it is read anew."""


LARGE = 500
"""People; with as many of them a leaderboard takes so long to read that it is not done at once."""

REST_S = 1.0
"""How long a large one is given as it is, whatever moves: else a rush of results is all that the
process has time for."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """One task version on one GPU type; `moves` grows whenever the rest is another.

    `refused` has, for each person without a score here, the latest ranked run that did not pass,
    in words which all may read.
    """

    moves: int
    entries: tuple[Standing, ...]
    refused: tuple[Refusal, ...]
    reference: Reference | None


@dataclass(slots=True)
class _Place:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    seen: Leaderboard | None = None
    since: float = 0.0

    def will_do(self, seen: Leaderboard) -> bool:
        """Whether what was seen may be given although something has moved since."""
        age = _now() - self.since
        rests = len(seen.entries) + len(seen.refused) >= LARGE and age < REST_S
        return rests or (self.lock.locked() and age < OLDEST_S)


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class _Memory:
    """What one process remembers of one store."""

    places: OrderedDict[tuple[TaskVersionId, str], _Place] = field(default_factory=OrderedDict)
    versions: OrderedDict[TaskVersionId, TaskVersion] = field(default_factory=OrderedDict)


_MEMORIES: WeakKeyDictionary[Store, _Memory] = WeakKeyDictionary()


async def leaderboard(
    store: Store, version: TaskVersionId, gpu: str, *, newest: bool = False
) -> Leaderboard:
    """The leaderboard as it is now, or where `newest` is not asked for as it was a moment ago."""
    places = _memory(store).places
    place = places.setdefault((version, gpu), _Place())
    _touch(places, (version, gpu))
    # Before all else: what is read after it can only be newer, and is then read once more.
    moves = await store.results.moves(version, gpu)
    seen = place.seen
    if seen is not None and (seen.moves >= moves or (not newest and place.will_do(seen))):
        return seen
    async with place.lock:
        if place.seen is None or place.seen.moves < moves:
            place.since = _now()
            place.seen = await _read(store, version, gpu, (moves, place.seen))
        return place.seen


async def task_version(store: Store, version: TaskVersionId) -> TaskVersion:
    """A version of a task, which never changes; LookupError when there is none."""
    versions = _memory(store).versions
    known = versions.get(version)
    if known is None:
        known = await store.boards.version(version)
        if known is None:
            raise LookupError(f"there is no task version {version}")
        versions[version] = known
    _touch(versions, version)
    return known


def _memory(store: Store) -> _Memory:
    return _MEMORIES.setdefault(store, _Memory())


def _touch(remembered: "OrderedDict[Key, Value]", key: Key) -> None:
    remembered.move_to_end(key)
    while len(remembered) > MOST:
        remembered.popitem(last=False)


async def _read(
    store: Store, version: TaskVersionId, gpu: str, before: tuple[int, Leaderboard | None]
) -> Leaderboard:
    moves, old = before
    entered = await store.results.entrants(version, gpu)
    await asyncio.sleep(0)  # thousands of rows have just been read: others first, then the rest
    entries = rank_entrants(entered)
    ranked = {entry.score.person for entry in entries}
    known = {each.submission: each for each in (old.refused if old else ())}
    refused = await _refused(store, (version, gpu), ranked, known)
    return Leaderboard(moves, entries, refused, await store.references.of(version, gpu))


async def _refused(
    store: Store,
    place: tuple[TaskVersionId, str],
    ranked: set[PersonId],
    known: Mapping[SubmissionId, Refusal],
) -> tuple[Refusal, ...]:
    """Those who are not ranked; what was told of a submission before is not worked out again."""
    found = []
    for refusal in await store.results.refusals(*place):
        if refusal.person in ranked:
            continue
        told = known.get(refusal.submission)
        if told is None:
            message = await _public_message(store, refusal)
            told = replace(refusal, message=message)
        elif told.person_name != refusal.person_name:
            told = replace(told, person_name=refusal.person_name)
        found.append(told)
    return tuple(found)


async def _public_message(store: Store, refusal: Refusal) -> str:
    """The message without what the ranked run's inputs could be told from."""
    if refusal.stage in PUBLIC_STAGES:
        return refusal.message
    for stored in await store.results.evaluations(refusal.submission):
        if stored.gpu == refusal.gpu:
            return disclosed(stored.evaluation).message
    return ""

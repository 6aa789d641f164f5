"""Remembers what each leaderboard looked like, until the store says that it has changed.

One number is read each time, and all the rest only when it has grown. Who asks while another reads
it anew gets what there was a moment before, and so does who asks for a large one soon after that;
who asks for the newest gets what there is.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from bot.domain.board import TaskVersion
from bot.domain.disclosure import disclosed
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId
from bot.domain.leaderboard import Leaderboard
from bot.domain.ranking import rank_entrants
from bot.domain.records import FailedRun
from bot.ports import Store
from bot.services.cache import Latest, always
from runners.contract.verdict import Stage

MOST = 256
"""Leaderboards, and task versions, that are remembered; those asked for last."""

LAG_S = 2.0
"""How long a leaderboard that has moved may be given while it is read anew."""
LARGE = 500
"""People, from whom on a leaderboard takes long to read."""
REST_S = 1.0
"""How long a large one is given as it is, whatever moves: else a rush of results is all that the
process has time for."""


@dataclass(slots=True)
class _Memory:
    """What one process remembers of one store."""

    places: Latest[Leaderboard] = field(default_factory=lambda: Latest(MOST))
    versions: Latest[TaskVersion] = field(default_factory=lambda: Latest(MOST))


_MEMORIES: WeakKeyDictionary[Store, _Memory] = WeakKeyDictionary()


async def leaderboard(
    store: Store, version: TaskVersionId, gpu: str, *, newest: bool = False
) -> Leaderboard:
    """The leaderboard as it is now, or where `newest` is not asked for as it was a moment ago."""
    places, place = _memory(store).places, (version, gpu)
    # Before all else: what is read after it can only be newer, and is then read once more.
    moves = await store.results.moves(*place)

    async def read() -> Leaderboard:
        return await _read(store, *place, (moves, places.last(place)))

    def current(seen: Leaderboard, age_s: float) -> bool:
        return seen.moves >= moves or (not newest and _is_large(seen) and age_s < REST_S)

    return await places.get(place, read, current=current, lag_s=0.0 if newest else LAG_S)


def _is_large(board: Leaderboard) -> bool:
    return len(board.entries) + len(board.refused) >= LARGE


async def task_version(store: Store, version: TaskVersionId) -> TaskVersion:
    """A version of a task, which never changes; LookupError when there is none."""

    async def read() -> TaskVersion:
        if known := await store.boards.version(version):
            return known
        raise LookupError(f"there is no task version {version}")

    return await _memory(store).versions.get(version, read, current=always, lag_s=0.0)


def _memory(store: Store) -> _Memory:
    return _MEMORIES.setdefault(store, _Memory())


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
    known: Mapping[SubmissionId, FailedRun],
) -> tuple[FailedRun, ...]:
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


async def _public_message(store: Store, refusal: FailedRun) -> str:
    """The message without what the ranked run's inputs could be told from."""
    if refusal.stage is Stage.TEST:
        return refusal.message
    for stored in await store.results.evaluations(refusal.submission):
        if stored.gpu == refusal.gpu:
            return disclosed(stored.evaluation).message
    return ""

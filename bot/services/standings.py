"""Standings of a board and their history, cached until they change.

Each request reads one change counter, and everything else only when the counter has grown. While
one caller reads it again, the others get the previous leaderboard. A large one is also reused for a
short time. Callers that pass `newest` always get the current state.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import fsum, log
from weakref import WeakKeyDictionary

from bot.domain.board import Board, TaskVersion, Viewer
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId
from bot.domain.leaderboard import (
    BoardStandings,
    GpuScaling,
    Leaderboard,
    PersonScaling,
    Placement,
    Season,
)
from bot.domain.noise import TOO_NOISY
from bot.domain.records import FailedRun
from bot.domain.reference_times import speed_of_light
from bot.domain.scoring import Entrant, ScoreValue, Standing, entrants, rank_entrants
from bot.domain.status import QUOTING, disclosed
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services.cache import SharedCache, always
from bot.services.contests import compared_now
from bot.services.lookup import find_board, find_submission
from runners.contract.gpus import find_gpu_type
from runners.contract.task import Grader
from runners.contract.verdict import Stage, Verdict

MAX_CACHED = 256
"""The most leaderboards, and task versions, in the cache; the least recently used are dropped."""

LAG_S = 2.0
"""How long a changed leaderboard may still be returned while it is read again."""
LARGE_ENTRIES = 500
"""The number of people from which a leaderboard counts as large: it takes long to read."""
LARGE_REUSE_S = 1.0
"""How long a large one is reused even if it changes: a burst of results must not block others."""


@dataclass(slots=True)
class _Caches:
    """What one process caches of one store."""

    leaderboards: SharedCache[Leaderboard] = field(default_factory=lambda: SharedCache(MAX_CACHED))
    versions: SharedCache[TaskVersion] = field(default_factory=lambda: SharedCache(MAX_CACHED))


_CACHES: WeakKeyDictionary[Store, _Caches] = WeakKeyDictionary()


async def leaderboard(
    store: Store, version: TaskVersionId, gpu: str, *, newest: bool = False
) -> Leaderboard:
    """Return the leaderboard as of now, or as of a moment ago unless `newest` is set."""
    cache, key = _caches(store).leaderboards, (version, gpu)
    # Read the counter first: anything that changes after it makes the next request read again.
    revision = await store.results.revision(*key)

    async def read() -> Leaderboard:
        return await _read_leaderboard(store, *key, (revision, cache.last(key)))

    def current(cached: Leaderboard, age_s: float) -> bool:
        reused = not newest and _is_large(cached) and age_s < LARGE_REUSE_S
        return reused or cached.revision >= revision

    return await cache.get(key, read, current=current, lag_s=0.0 if newest else LAG_S)


def _is_large(board: Leaderboard) -> bool:
    return len(board.entries) + len(board.refused) >= LARGE_ENTRIES


async def task_version(store: Store, version: TaskVersionId) -> TaskVersion:
    """Return a version of a task, which never changes; LookupError when there is none."""

    async def read() -> TaskVersion:
        if known := await store.boards.version(version):
            return known
        raise LookupError(f"there is no task version {version}")

    return await _caches(store).versions.get(version, read, current=always, lag_s=0.0)


def _caches(store: Store) -> _Caches:
    return _CACHES.setdefault(store, _Caches())


async def _read_leaderboard(
    store: Store, version: TaskVersionId, gpu: str, previous: tuple[int, Leaderboard | None]
) -> Leaderboard:
    revision, old = previous
    entered = await store.results.entrants(version, gpu)
    await asyncio.sleep(0)  # thousands of rows were just read: let other tasks run first
    entries = rank_entrants(entered)
    ranked = {entry.score.person for entry in entries}
    known = {each.submission: each for each in (old.refused if old else ())}
    refused = await _refused(store, (version, gpu), ranked, known)
    waiting = await compared_now(store, await store.confirmations.pending(version, gpu))
    pending = tuple(each for each in waiting if each.final is None)
    passed = {each.person: each.submission for each in pending}
    refused = tuple(each for each in refused if each.submission > passed.get(each.person, 0))
    return Leaderboard(revision, entries, refused, await store.references.of(version, gpu), pending)


async def _refused(
    store: Store,
    key: tuple[TaskVersionId, str],
    ranked: set[PersonId],
    known: Mapping[SubmissionId, FailedRun],
) -> tuple[FailedRun, ...]:
    """Return the last unranked runs of people without a rank; known messages are reused."""
    found = []
    for refusal in await store.results.refusals(*key):
        if refusal.person in ranked:
            continue
        run = known.get(refusal.submission)
        if run is None:
            run = replace(refusal, message=await _public_message(store, refusal))
        elif run.person_name != refusal.person_name:
            run = replace(run, person_name=refusal.person_name)
        found.append(run)
    return tuple(found)


async def _public_message(store: Store, refusal: FailedRun) -> str:
    """Return the message without what could reveal the ranked run's inputs."""
    if refusal.verdict == Verdict.PASSED:
        return TOO_NOISY
    if refusal.stage is Stage.TEST or refusal.in_confirmation:
        return refusal.message
    stored = await store.results.evaluations(refusal.submission)
    here = (each.evaluation for each in stored if each.gpu == refusal.gpu)
    return next((disclosed(each).message for each in here), "")


async def board_standings(
    store: Store,
    viewer: Viewer,
    named: str | Board,
    gpu: str | None = None,
    *,
    version: int | None = None,
) -> tuple[BoardStandings, ...]:
    """Return a named or found board's leaderboards, by default of its current task version."""
    board = named if isinstance(named, Board) else await find_board(store, viewer, named)
    gpus = board.gpus if gpu is None else (_gpu_name(gpu, board),)
    shown = await _version(store, board, version)
    own = board.belongs_to(viewer)
    standings = [await _standings(store, board, shown, each, own=own) for each in gpus]
    if viewer.sees_all:
        return tuple(standings)
    return tuple(map(_without_quotes, standings))


async def opening_gpu(store: Store, viewer: Viewer, board_name: str) -> str:
    """Return the GPU type to show first: with the viewer's own rank, then with most people."""
    board = await find_board(store, viewer, board_name)

    async def interest(gpu: str) -> tuple[bool, int]:
        entries = (await leaderboard(store, board.task_version, gpu)).entries
        return any(each.score.person == viewer.person for each in entries), len(entries)

    found = {gpu: await interest(gpu) for gpu in board.gpus}
    return max(found, key=found.__getitem__)


def _without_quotes(standings: BoardStandings) -> BoardStandings:
    """Remove exception texts: only the owner of a hidden source may see them."""
    refused = tuple(
        replace(each, message="") if each.verdict in QUOTING else each for each in standings.refused
    )
    return replace(standings, refused=refused, quotes=False)


def _gpu_name(gpu: str, board: Board) -> str:
    """Return the GPU type as the board writes it."""
    spelling = find_gpu_type(gpu, board.gpus)
    if spelling is None:
        raise unknown_name("gpu", gpu, board.gpus)
    return spelling


async def _version(store: Store, board: Board, number: int | None) -> TaskVersion:
    if number is None:
        return await task_version(store, board.task_version)
    versions = await store.boards.versions(board.id)
    for version in versions:
        if version.number == number:
            return version
    raise UserError(
        "unknown-version",
        f"leaderboard {board.name!r} has no task version {number}; available: "
        f"{', '.join(str(each.number) for each in versions)}",
    )


async def _standings(
    store: Store, board: Board, version: TaskVersion, gpu: str, *, own: bool
) -> BoardStandings:
    finals = store.finals.of(board.id)
    current, of_board = await asyncio.gather(leaderboard(store, version.id, gpu), finals)
    task, reference = version.definition, current.reference
    # The failure of a reference does not advance the change counter, so it is read for the creator.
    latest = await store.references.of(version.id, gpu) if own else None
    ended = {(each.task_version, each.gpu): each for each in of_board}
    return BoardStandings(
        board=board,
        version=version.number,
        gpu=gpu,
        entries=current.entries,
        refused=current.refused,
        note=task.version_note,
        speed_of_light_ns=speed_of_light(task, gpu),
        reference=None if reference is None else reference.value,
        reference_failure="" if latest is None else latest.failure,
        in_process=task.grader is Grader.POPCORN,
        pending=current.pending,
        final=ended.get((version.id, gpu)),
        revision=current.revision,
    )


async def placements(store: Store, submission_id: SubmissionId) -> tuple[Placement, ...]:
    """Return a placement for each GPU type on which the submission has a score that counts."""
    submission = await find_submission(store, submission_id)
    if await store.moderation.exclusion_of(submission_id) is not None:
        return ()
    found = []
    for outcome in await store.results.outcomes((submission_id,)):
        if outcome.score is not None:
            board = await leaderboard(store, submission.task_version, outcome.gpu, newest=True)
            place = _placement(submission, outcome.gpu, outcome.score, board)
            found += [] if place is None else [await _with_previous(store, submission, place)]
    return tuple(found)


async def _with_previous(store: Store, submission: Submission, place: Placement) -> Placement:
    """Return the placement with the person's best time of an earlier submission."""
    own = await store.results.scores_of(submission.person, submission.task_version, place.gpu)
    earlier = [each.value for each in own if each.submission < submission.id]
    return replace(place, previous=min(earlier, key=lambda each: each.upper_ns, default=None))


def _placement(
    submission: Submission, gpu: str, value: ScoreValue, board: Leaderboard
) -> Placement | None:
    """Return the placement; None when the score was removed from the board meanwhile."""
    of_person = (each for each in board.entries if each.score.person == submission.person)
    standing = next(of_person, None)
    if standing is None:
        return None
    is_best = standing.score.submission == submission.id
    better = [each for each in board.entries if each.rank < standing.rank]
    lower = [each for each in board.entries if each.rank > standing.rank]
    return Placement(
        gpu=gpu,
        value=value,
        rank=standing.rank,
        shared=sum(each.rank == standing.rank for each in board.entries) > 1,
        entries=len(board.entries),
        is_best=is_best,
        improved=is_best and standing.attempts > 1,
        reference=None if board.reference is None else board.reference.value,
        vs_reference=standing.score.vs_reference,
        best=standing.score.value,
        ahead=better[-1] if better else None,
        behind=lower[0] if lower else None,
    )


MOST_CHANGED = 200
"""The most people whose earlier scores are read because their best is newer than a moment."""


async def ranks_at(
    store: Store, entries: Sequence[Standing], moment: datetime
) -> Mapping[PersonId, int] | None:
    """Return the rank that each person had at a moment; None if too many have a new best since.

    Scores that were taken off the board since do not count.
    """
    kept = [each for each in entries if each.score.submitted_at <= moment]
    changed = [each.score for each in entries if each.score.submitted_at > moment]
    if len(changed) > MOST_CHANGED:
        return None
    entered = [Entrant(each.score, each.attempts) for each in kept]
    for new in changed:
        scores = await store.results.scores_of(new.person, new.task_version, new.gpu)
        entered += entrants(each for each in scores if each.submitted_at <= moment)
    return {each.score.person: each.rank for each in rank_entrants(entered)}


async def scaling(store: Store, viewer: Viewer, board_name: str) -> GpuScaling:
    """Return how kernels scale over the GPU types of a board's current task version."""
    board = await find_board(store, viewer, board_name)
    entries_by_gpu = {
        gpu: (await leaderboard(store, board.task_version, gpu)).entries for gpu in board.gpus
    }
    best_ns = {
        gpu: min(each.score.value.upper_ns for each in entries)
        for gpu, entries in entries_by_gpu.items()
        if entries
    }
    people = _scaling_by_person(entries_by_gpu)
    people.sort(key=lambda each: (-len(each.values), _slowness(each, best_ns)))
    return GpuScaling(board, tuple(sorted(best_ns, key=best_ns.__getitem__)), tuple(people))


def _scaling_by_person(entries_by_gpu: dict[str, tuple[Standing, ...]]) -> list[PersonScaling]:
    people: dict[PersonId, PersonScaling] = {}
    for gpu, entries in entries_by_gpu.items():
        for entry in entries:
            score = entry.score
            person = people.setdefault(score.person, PersonScaling(score.person_name, {}))
            person.values[gpu] = score.value
    return list(people.values())


def _slowness(person: PersonScaling, best_ns: dict[str, float]) -> float:
    """Return the mean logarithm of how much slower the person is than the first place."""
    ratios = [log(value.upper_ns / best_ns[gpu]) for gpu, value in person.values.items()]
    return fsum(ratios) / len(ratios)


MAX_HISTORY = 1_500
"""About how many scores are shown apart from records and bests; more dots would overlap."""


async def season(
    store: Store, clock: Clock, viewer: Viewer, board_name: str, *, gpu: str | None = None
) -> Season:
    """Return the season of the current task version, by default on the board's first GPU type."""
    board = await find_board(store, viewer, board_name)
    (leaderboard,) = await board_standings(store, viewer, board_name, gpu or board.gpus[0])
    history = await store.results.score_history(board.task_version, leaderboard.gpu, MAX_HISTORY)
    now = clock.now()
    end = now if board.deadline is None else min(now, board.deadline)
    last = history.scores[-1].submitted_at if history.scores else end
    return Season(leaderboard, history.scores, max(end, last), history.total)

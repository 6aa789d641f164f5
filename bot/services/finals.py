"""Finals: the first entries of a board are compared, and the table is published.

`bot.services.confirmations` runs their comparisons, one after the other; this module says which
come next. A final goes on where it was after any restart, because all state is in the store.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.board import Board, Viewer
from bot.domain.confirmation import can_confirm, scaled
from bot.domain.errors import UserError, unknown_name
from bot.domain.finals import (
    GROWS_MOST,
    LEAST_TOP,
    MOST_TOP,
    Final,
    FinalPlace,
    FinalRequest,
    NewFinal,
    final_places,
    final_rows,
    final_standings,
    next_entry,
    next_pair,
)
from bot.domain.ids import ConfirmationId, SubmissionId
from bot.domain.notifications import NotificationKind, final_notification
from bot.domain.scoring import Entrant, PairRatio, Score, by_speed, rank_entrants
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.lookup import find_board
from bot.services.moderation import Decision
from runners.contract.gpus import find_gpu_type

_ROUNDED = 1 + 1e-12
"""A factor above the rounding errors of a few multiplications, so that slower runs stay slower."""


async def start_final(
    store: Store, viewer: Viewer, decision: Decision, request: FinalRequest
) -> tuple[Final, ...]:
    """Start a final on each requested GPU type with two or more entries.

    UserError when there is no such GPU type, or when a final still runs on one of them.
    """
    board = await find_board(store, viewer, request.board)
    gpus = await _contested_gpus(store, board, request)
    started = []
    subject = f"board {board.name} on {', '.join(gpus)}, top {request.top}"
    async with audited(store, decision.actor, "final", subject, reason=decision.reason) as tx:
        for gpu in gpus:
            new = NewFinal(board.id, board.task_version, gpu, request.top, decision.actor)
            final = await tx.finals.start(new)
            if final is None:
                raise UserError(
                    "final-running",
                    f"a final of {board.name!r} on {gpu} still runs; see or end it with "
                    f"`podium final {board.name} --show` or `--cancel`",
                )
            started.append(final)
    return tuple(started)


async def _contested_gpus(store: Store, board: Board, request: FinalRequest) -> tuple[str, ...]:
    """Return the GPU types of a final; UserError when there is nothing to compare."""
    if not LEAST_TOP <= request.top <= MOST_TOP:
        raise UserError("bad-top", f"a final compares {LEAST_TOP} to {MOST_TOP} entries")
    version = await store.boards.version(board.task_version)
    if version is None or not can_confirm(version.definition):
        raise UserError(
            "no-comparison",
            f"{board.name!r} has its own evaluation program, which times its submissions, so the "
            "judge has no times to compare",
        )
    gpus = board.gpus
    if request.gpu is not None:
        gpu = find_gpu_type(request.gpu, board.gpus)
        if gpu is None:
            raise unknown_name("gpu", request.gpu, board.gpus)
        gpus = (gpu,)
    entered = [(gpu, await store.results.entrants(version.id, gpu)) for gpu in gpus]
    contested = tuple(gpu for gpu, entrants in entered if len(entrants) >= LEAST_TOP)
    if not contested:
        raise UserError(
            "no-contest", f"{board.name!r} has fewer than two ranked people on {', '.join(gpus)}"
        )
    return contested


async def finals_of(store: Store, viewer: Viewer, board: str) -> tuple[Final, ...]:
    """Return the newest final of each GPU type of a board."""
    return await store.finals.of((await find_board(store, viewer, board)).id)


async def cancel_final(store: Store, viewer: Viewer, decision: Decision, name: str) -> int:
    """Stop the running finals of a board; the standings stay as they are. Return how many."""
    board = await find_board(store, viewer, name)
    running = [each for each in await store.finals.of(board.id) if each.rows is None]
    if not running:
        raise UserError("no-final", f"no final of {board.name!r} is running")
    runs: list[SubmissionId] = []
    subject = f"board {board.name}"
    async with audited(store, decision.actor, "end-final", subject, reason=decision.reason) as tx:
        for each in running:
            runs += await tx.finals.cancel(each.id)
    for run in runs:
        await store.jobs.request_cancel(run)
    return len(running)


async def next_comparison(
    tx: Store, clock: Clock, final: Final
) -> tuple[ConfirmationId, SubmissionId] | None:
    """Store the next comparison of a final and return it with the rival; None if it waits or ends.

    A final of a closed board begins once all its ranked runs are judged.
    """
    board = await tx.boards.get(final.board)
    if board is None:
        return None
    if final.entries is None:
        unjudged = await tx.finals.unjudged(final.task_version, final.gpu)
        if unjudged and not board.is_open(clock.now()):
            return None
        entrants = await tx.results.entrants(final.task_version, final.gpu)
        deleted = await tx.people.deleted()  # they have no sources to compare
        present = [each for each in entrants if each.best.person not in deleted]
        first = rank_entrants(present)[: final.top]
        final = replace(final, entries=tuple(each.score.submission for each in first))
        await tx.finals.begin(final.id, final.entries or ())
    return await _next_pair(tx, board, final)


async def _next_pair(
    tx: Store, board: Board, final: Final
) -> tuple[ConfirmationId, SubmissionId] | None:
    results = {
        (each.submission, each.rival): each.ratio
        for each in await tx.finals.comparisons(final.id)
        if each.rival is not None and not each.is_pending
    }
    scores = await _scores(tx, final)
    entries = [each for each in final.entries or () if each in scores]
    order, pair = next_pair(entries, results)
    if pair is not None:
        later, earlier = pair
        place = order.index(earlier) + 1
        return await tx.confirmations.compare(final.id, later, place), earlier
    places = final_places(scores, order, results)
    standings = final_standings(places, results, await _others(tx, final, places))
    most = min(MOST_TOP, GROWS_MOST * final.top)
    further = next_entry(standings, order) if order and len(final.entries or ()) < most else None
    if further is None:
        await _end(tx, board, replace(final, rows=final_rows(standings, places)), places)
        return None
    entries = [*(final.entries or ()), further.score.submission]
    await tx.finals.begin(final.id, tuple(entries))
    return await _next_pair(tx, board, replace(final, entries=tuple(entries)))


async def _others(tx: Store, final: Final, places: Sequence[FinalPlace]) -> list[Entrant]:
    """Return the people who are not in a final, with their best runs that are not entries."""
    inside = {each.score.person for each in places}
    entrants = await tx.results.entrants(final.task_version, final.gpu)
    inside |= await tx.people.deleted()
    others = [each for each in entrants if each.best.person not in inside]
    return [each for each in others if each.best.submission not in (final.entries or ())]


async def _scores(tx: Store, final: Final) -> dict[SubmissionId, Score]:
    """Return the scores of a final's entries that still count."""
    found: dict[SubmissionId, Score] = {}
    for submission in await tx.submissions.several(final.entries or ()):
        own = await tx.results.scores_of(submission.person, final.task_version, final.gpu)
        found |= {each.submission: each for each in own if each.submission == submission.id}
    return found


async def _end(tx: Store, board: Board, ended: Final, places: Sequence[FinalPlace]) -> None:
    """Store the scores of a final, its table, and the notifications of its result."""
    for each in places:
        await _rescore(tx, each.score)
    await tx.finals.end(ended.id, ended.rows or ())
    listeners = await tx.listeners.to(NotificationKind.RECORD)
    await tx.outbox.put([final_notification(ended, board, each) for each in listeners])


async def _rescore(tx: Store, after: Score) -> None:
    """Store the score of an entry, and scale its person's slower ones by the same factor.

    Otherwise another run of the same kernel, which was not compared, would count in its place. The
    scaled runs keep the order of their upper ends, by which runs are ordered.
    """
    own = await tx.results.scores_of(after.person, after.task_version, after.gpu)
    before = next(each for each in own if each.submission == after.submission)
    factor = PairRatio(_ROUNDED * after.value.upper_ns / before.value.upper_ns, 0.0)
    for each in own:
        slower = by_speed(before) < by_speed(each)
        if slower and each.value.upper_ns <= _ROUNDED * after.value.upper_ns:
            changed = scaled(each.value, factor, each.value)
            await tx.finals.rescore(replace(each, value=changed))
    await tx.finals.rescore(after)

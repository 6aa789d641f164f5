"""Compares runs with the holders of the first places, and decides by the result.

A run that would take one of the first places from another person has no score until it is
confirmed. On each leaderboard one comparison runs at a time, so that everybody is compared with the
holder of that moment. All state is in the store: any process may take the next step, and each step
is one transaction.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import structlog

from bot.domain.confirmation import Confirmation, ConfirmationState, can_confirm
from bot.domain.errors import StoreError
from bot.domain.ids import JobId, TaskVersionId
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services import finals
from bot.services.comparisons import contest_of, decide, order, present_contest

_NOT_NEEDED = "it takes none of the first places from another person any more"
_log = structlog.get_logger(__name__)


async def run_confirmations(
    store: Store, clock: Clock, stop: asyncio.Event, *, every_s: float = 1.0
) -> None:
    """Take what steps are due, every `every_s`, until `stop` is set."""
    while not stop.is_set():
        try:
            await advance(store, clock)
        except StoreError as error:
            _log.warning("confirmations wait", action="confirmations-wait", error=str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stop.wait()


async def advance(store: Store, clock: Clock) -> None:
    """Take the steps that are due: decide what was compared, and queue the next comparisons."""
    for version, gpu in await store.confirmations.unfinished():
        try:
            await _advance(store, clock, version, gpu)
        except StoreError as error:
            _log.warning("confirmations wait", action="confirmations-wait", error=str(error))
        except Exception:  # noqa: BLE001  a bug with one leaderboard must not stop the others
            bug = {"task_version": version, "gpu": gpu}
            _log.exception("bug in a confirmation", action="confirmation-bug", **bug)


async def _advance(store: Store, clock: Clock, version: TaskVersionId, gpu: str) -> None:
    async with store.transaction() as tx:
        if not await tx.confirmations.lock(version, gpu):
            return
        pending = await tx.confirmations.pending(version, gpu)
        running = next((each for each in pending if each.run is not None), None)
        if running is not None and await decide(tx, running):
            return  # it still runs, or the same two are compared again
        waiting = await unexcluded(tx, await tx.confirmations.pending(version, gpu))
        final = await tx.finals.running(version, gpu)
        begins = final is not None and (final.entries is not None or not waiting)
        pair = await finals.next_comparison(tx, clock, final) if final and begins else None
        if pair is not None:
            await order(tx, *pair)
            return
        for each in waiting:
            if await _start(tx, each):
                return


async def unexcluded(store: Store, waiting: Iterable[Confirmation]) -> tuple[Confirmation, ...]:
    """Return those whose submissions are not excluded: the others wait until they are ranked."""
    moderation = store.moderation
    return tuple(
        [each for each in waiting if await moderation.exclusion_of(each.submission) is None]
    )


async def hold_if_contested(tx: Store, submission: Submission, job: JobId, gpu: str) -> None:
    """Hold a new score back if it takes one of the first places from another person.

    To be called in the transaction that stored the score, which keeps others from adding one.
    """
    version = await tx.boards.version(submission.task_version)
    if version is None or not can_confirm(version.definition):
        return
    own = await tx.results.scores_of(submission.person, version.id, gpu)
    new = next((each for each in own if each.submission == submission.id), None)
    found = None if new is None else await contest_of(tx, new, own)
    if found is not None:
        await tx.confirmations.hold(job, found.place)


async def _start(tx: Store, waiting: Confirmation) -> bool:
    """Queue the comparison of a run with the present holder; False if there is none to make."""
    found = await present_contest(tx, waiting, waiting.held)
    if found is None:
        await tx.confirmations.settle(waiting.id, ConfirmationState.DROPPED, reason=_NOT_NEEDED)
        if waiting.held is not None:
            await tx.confirmations.enter(waiting, waiting.held)
        return False
    await order(tx, waiting.id, found.holder.submission)
    return True

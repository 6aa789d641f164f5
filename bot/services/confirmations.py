"""Compares runs with the holders of the first places, and decides by the result.

A run that would take one of the first places from another person has no score until it is
confirmed. On each leaderboard one comparison runs at a time, so that each run is compared with the
present holder. All state is in the store: any process may take the next step, and each step is one
transaction.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from bot.domain.accounts import SYSTEM_IDENTITY, SYSTEM_NAME
from bot.domain.confirmation import (
    MOST_ATTEMPTS,
    MOST_FAILURES,
    Confirmation,
    ConfirmationState,
    Reading,
    combined,
    in_turn,
    level,
    limited,
    read,
    scaled,
    settled,
    state_of,
)
from bot.domain.errors import StoreError
from bot.domain.finals import before
from bot.domain.ids import ConfirmationId, SubmissionId, TaskVersionId
from bot.domain.job import FINAL_STATES
from bot.domain.scoring import Score, ScoreValue
from bot.domain.status import disclosed
from bot.domain.submission import Exclusion, ExclusionKind
from bot.ports import Clock, Store
from bot.services.contests import compared_now, exclude, fastest_ns, measured_ns, present_contest
from bot.services.finals import next_comparison
from runners.contract.comparison import Ratio
from runners.contract.evaluation import Evaluation
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict

UNDECIDED = "confirmation-failed"
"""The audit action for a comparison that failed each time."""
_NOT_NEEDED = "it takes none of the first places from another person any more"
_CHECKED, _CHECKED_MADE, _CHECKED_NOT_MADE = range(MOST_ATTEMPTS + 1, MOST_ATTEMPTS + 4)
"""Values of `attempts`: the run is compared with itself; then its rival is compared with itself,
after the run's comparison with itself succeeded, or failed."""
_ABSENT = "its submitter is banned or was deleted, so it is not ranked"
_log = structlog.get_logger(__name__)


async def run_confirmations(
    store: Store, clock: Clock, stop: asyncio.Event, *, every_s: float = 1.0
) -> None:
    """Take the steps that are due, every `every_s` seconds, until `stop` is set."""
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
    for run in await _end_for_absent_people(store, version, gpu):
        await store.jobs.request_cancel(run)
    async with store.transaction() as tx:
        if not await tx.confirmations.lock(version, gpu):
            return
        pending = await tx.confirmations.pending(version, gpu)
        running = next((each for each in pending if each.run is not None), None)
        if running is not None and await _decide(tx, running):
            return  # it still runs, or the same two are compared again
        waiting = await compared_now(tx, await tx.confirmations.pending(version, gpu))
        final = await tx.finals.running(version, gpu)
        if final is not None:
            earlier = before(final, waiting)
            waiting = earlier or waiting
            pair = None if earlier else await next_comparison(tx, clock, final)
            if pair is not None:
                await _order(tx, *pair)
                return
        for each in in_turn(waiting):
            if await _start(tx, each):
                return


async def _end_for_absent_people(
    store: Store, version: TaskVersionId, gpu: str
) -> tuple[SubmissionId, ...]:
    """End the comparisons of banned and deleted people, whose runs are not ranked; return these."""
    gone = {*await store.moderation.bans(), *await store.people.deleted()}
    async with store.transaction() as tx:
        if not gone or not await tx.confirmations.lock(version, gpu):
            return ()
        pending = await tx.confirmations.pending(version, gpu)
        ended = [each for each in pending if each.person in gone and each.final is None]
        for each in ended:
            await tx.confirmations.settle(each.id, ConfirmationState.DROPPED, reason=_ABSENT)
    return tuple(each.run for each in ended if each.run is not None)


async def _start(tx: Store, waiting: Confirmation) -> bool:
    """Queue the comparison of a run with the present holder; False if there is none to make."""
    found = await present_contest(tx, waiting, waiting.held)
    if found is None:
        await tx.confirmations.settle(waiting.id, ConfirmationState.DROPPED, reason=_NOT_NEEDED)
        if waiting.held is not None:
            await _enter(tx, waiting, waiting.held)
        return False
    await _order(tx, waiting.id, found.holder.submission)
    return True


async def _order(
    tx: Store, waiting: ConfirmationId, rival: SubmissionId, alone: SubmissionId | None = None
) -> None:
    """Queue the run that compares with this rival, or one of the two with itself."""
    system = await tx.people.ensure(SYSTEM_IDENTITY, SYSTEM_NAME)
    await tx.confirmations.order(waiting, rival, system.id, alone=alone)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A comparison with its rival, and the evaluation of its last run, if there is one."""

    confirmation: Confirmation
    rival: SubmissionId
    evaluation: Evaluation | None

    @property
    def failure(self) -> str:
        """Why the run failed, in words that everybody may read."""
        if self.evaluation is None:
            return ""
        verdict, message = self.evaluation.verdict, disclosed(self.evaluation).message
        if self.confirmation.alone is not None:  # others read it too, and it may quote the source
            comparison, message = self.evaluation.comparison, ""
            if verdict is Verdict.PASSED and comparison is not None:
                verdict = comparison.rival_verdict
        words = message if verdict in message else f"{verdict}: {message}".rstrip(": ")
        return words.replace("_", " ")


async def _decide(tx: Store, running: Confirmation) -> bool:
    """Decide by the last run of a comparison; return whether the same two are still compared."""
    version = await tx.boards.version(running.task_version)
    if running.run is None or running.rival is None or version is None:
        return False
    jobs = await tx.jobs.of(running.run)
    if any(job.state not in FINAL_STATES for job in jobs):
        return True
    stored = await tx.results.evaluations(running.run)
    met = _Meeting(running, running.rival, stored[0].evaluation if stored else None)
    return await _go_on(tx, met, version.definition)


async def _go_on(tx: Store, met: _Meeting, task: TaskDefinition) -> bool:
    """Decide, or order the next run; return whether there is one."""
    one, reading = met.confirmation, read(task, met.evaluation)
    if one.alone is not None and one.attempts > MOST_ATTEMPTS:
        return await _after_check(tx, met, made=reading is Reading.MADE)
    if one.alone is not None:
        failed = reading in {Reading.FAILED, Reading.RIVAL_FAILED}
        return await _after_alone(tx, met, one.alone, failed=failed)
    if reading is Reading.FAILED and one.final is None:
        return await _refuse(tx, met)
    comparison = None if met.evaluation is None else met.evaluation.comparison
    if reading is Reading.MADE and comparison is not None:
        return await _settle(tx, met, task, comparison.benchmarks)
    return await _repeat(tx, met, reading)


async def _refuse(tx: Store, met: _Meeting) -> bool:
    """End the confirmation of a run that failed in it: the run is not ranked."""
    one = met.confirmation
    reason = f"it failed when it was compared with #{met.rival}: {met.failure}"
    await tx.confirmations.settle(one.id, ConfirmationState.REFUSED, reason=reason)
    await tx.confirmations.refuse(one)
    return False


async def _settle(
    tx: Store, met: _Meeting, task: TaskDefinition, ratios: tuple[Ratio, ...]
) -> bool:
    """Decide by the ratio that was measured."""
    one = met.confirmation
    holder = await _score_of(tx, met.rival, one.gpu)
    stored = await tx.results.evaluations(met.rival)
    measured = next((each.evaluation for each in stored if each.gpu == one.gpu), None)
    if holder is None or measured is None:
        return await _drop(tx, one, f"#{met.rival} is not ranked any more")
    ratio = combined(task, measured, ratios)
    await tx.confirmations.settle(one.id, state_of(ratio), ratio=ratio)
    if one.held is not None:
        known = await tx.confirmations.of(one.submission)
        again = sum(each.gpu == one.gpu and each.ratio is not None for each in known) > 1
        found = scaled(holder.value, ratio, one.held)
        await _place(tx, one, settled(one.held, found, again=again))
    return False


async def _place(tx: Store, decided: Confirmation, value: ScoreValue) -> None:
    """Rank a run with this value, unless it still has to be compared with another holder."""
    further = await present_contest(tx, decided, value)
    if further is None:
        await _enter(tx, decided, value)
    else:
        await tx.confirmations.follow(decided, value, further.place)


async def _drop(tx: Store, one: Confirmation, reason: str) -> bool:
    """End a comparison because one of the two is not ranked; then compare with the next holder."""
    await tx.confirmations.settle(one.id, ConfirmationState.DROPPED, reason=reason)
    if one.held is not None:
        await _place(tx, one, one.held)
    return False


async def _repeat(tx: Store, met: _Meeting, reading: Reading) -> bool:
    """Go on after a run without a ratio: if one of the two failed, it is compared with itself."""
    one = met.confirmation
    counted = replace(one, attempts=one.attempts + 1)
    await tx.confirmations.count(one.id, counted.attempts, one.failures)
    failed = {Reading.FAILED: one.submission, Reading.RIVAL_FAILED: met.rival}.get(reading)
    if failed is None:
        return await _compare_again(tx, counted, met.rival)
    await _order(tx, one.id, met.rival, failed)
    return True


async def _compare_again(tx: Store, one: Confirmation, rival: SubmissionId) -> bool:
    """Compare the same two again, or find out which of them prevents it."""
    if one.attempts < MOST_ATTEMPTS:
        await _order(tx, one.id, rival)
        return True
    # One of them may prevent it on purpose: each is compared with itself to find out which.
    await tx.confirmations.count(one.id, _CHECKED, 0)
    await _order(tx, one.id, rival, one.submission)
    return True


async def _after_check(tx: Store, met: _Meeting, *, made: bool) -> bool:
    """Continue after one of two runs that could not be compared was compared with itself.

    If only one of them prevents it, that one is not ranked. Otherwise neither is to blame.
    """
    one, alone = met.confirmation, met.confirmation.alone
    if not made and one.failures + 1 < MOST_FAILURES:
        await tx.confirmations.count(one.id, one.attempts, one.failures + 1)
        await _order(tx, one.id, met.rival, alone)
        return True
    if one.attempts == _CHECKED:
        await tx.confirmations.count(one.id, _CHECKED_MADE if made else _CHECKED_NOT_MADE, 0)
        await _order(tx, one.id, met.rival, met.rival)
        return True
    own_made = one.attempts == _CHECKED_MADE
    if own_made is made:
        return await _give_up(tx, one, met.rival)
    prevents = met.rival if own_made else one.submission
    reason = "it could be compared neither with another run nor with itself; the other run could"
    return await _disqualify(tx, one, prevents, reason)


async def _give_up(tx: Store, one: Confirmation, rival: SubmissionId) -> bool:
    """End a comparison that could not be made: the holder is not displaced."""
    reason = f"{MOST_ATTEMPTS} runs could not compare it with #{rival}"
    await tx.confirmations.settle(one.id, ConfirmationState.UNDECIDED, reason=reason)
    subject = f"submission {one.submission} on {one.gpu}"
    await tx.audit.record(None, UNDECIDED, subject, reason)
    if one.held is not None:
        holder = await _score_of(tx, rival, one.gpu)
        value = one.held if holder is None else level(one.held, holder.value)
        await _enter(tx, one, value)
    return False


async def _enter(tx: Store, one: Confirmation, value: ScoreValue) -> None:
    """Rank a run with this value, limited by its own measurement (see `limited`)."""
    own_ns = await measured_ns(tx, one.task_version, one.submission, one.gpu)
    if own_ns is not None:
        everyone = await tx.results.entrants(one.task_version, one.gpu)
        others = [each.best for each in everyone if each.best.person != one.person]
        value = limited(value, own_ns, await fastest_ns(tx, others))
    await tx.confirmations.enter(one, value)


async def _after_alone(tx: Store, met: _Meeting, alone: SubmissionId, *, failed: bool) -> bool:
    """Continue after a run was compared with itself; disqualify it after `MOST_FAILURES`."""
    one = met.confirmation
    if not failed:
        return await _compare_again(tx, one, met.rival)
    failures = one.failures + 1
    await tx.confirmations.count(one.id, one.attempts, failures)
    if failures < MOST_FAILURES:
        await _order(tx, one.id, met.rival, alone)
        return True
    reason = f"it failed in a comparison, and {failures} times with itself: {met.failure}"
    return await _disqualify(tx, one, alone, reason)


async def _disqualify(tx: Store, one: Confirmation, loser: SubmissionId, reason: str) -> bool:
    """Take one of the two off its leaderboards; the audit log says so, and an admin may undo it."""
    if loser == one.submission and one.held is not None:
        await tx.confirmations.enter(one, one.held)  # so that it has a score if it is ranked again
    await exclude(tx, Exclusion(loser, ExclusionKind.DISQUALIFIED, reason))
    await tx.audit.record(None, ExclusionKind.DISQUALIFIED, f"submission {loser}", reason)
    why = f"#{loser} is not ranked any more: {reason}"
    if loser != one.submission:
        return await _drop(tx, one, why)
    await tx.confirmations.settle(one.id, ConfirmationState.DROPPED, reason=why)
    return False


async def _score_of(tx: Store, submission: SubmissionId, gpu: str) -> Score | None:
    """Return a submission's score, unless it does not count any more."""
    found = await tx.submissions.get(submission)
    if found is None:
        return None
    scores = await tx.results.scores_of(found.person, found.task_version, gpu)
    return next((each for each in scores if each.submission == submission), None)

"""What follows from a run that compared two submissions, or judged one of them again alone."""

from dataclasses import dataclass, replace

from bot.domain.accounts import SYSTEM_IDENTITY, SYSTEM_NAME
from bot.domain.confirmation import (
    MOST_ATTEMPTS,
    MOST_FAILURES,
    MOST_PAIRS,
    Confirmation,
    ConfirmationState,
    Contest,
    Reading,
    combined,
    contest,
    level,
    read,
    scaled,
    settled,
)
from bot.domain.ids import ConfirmationId, SubmissionId
from bot.domain.job import FINAL_STATES
from bot.domain.scoring import Score, ScoreValue, by_speed
from bot.domain.status import disclosed
from bot.domain.submission import Exclusion, ExclusionKind
from bot.ports import Store
from runners.contract.evaluation import Evaluation, Ratio
from runners.contract.task import TaskDefinition

UNDECIDED = "confirmation-failed"
"""The audit action for a comparison that failed each time."""


async def contest_of(tx: Store, new: Score, own: tuple[Score, ...]) -> Contest | None:
    """Return the place that a score takes from another person now; `own` are its person's."""
    everyone = await tx.results.entrants(new.task_version, new.gpu)
    others = [each for each in everyone if each.best.person != new.person]
    earlier = [each for each in own if each.submission != new.submission]
    known = await tx.confirmations.of(new.submission)
    decided = (ConfirmationState.DROPPED, ConfirmationState.PENDING)
    compared = {
        each.rival
        for each in known
        if each.rival is not None and each.gpu == new.gpu and each.state not in decided
    }
    if len(compared) >= MOST_PAIRS:
        return None
    return contest(new, others, min(earlier, key=by_speed, default=None), compared)


async def present_contest(
    tx: Store, waiting: Confirmation, value: ScoreValue | None
) -> Contest | None:
    """Return whom a held run would displace now, with this value."""
    submission = await tx.submissions.get(waiting.submission)
    if submission is None or value is None:
        return None
    own = await tx.results.scores_of(waiting.person, waiting.task_version, waiting.gpu)
    new = Score(
        submission=submission.id,
        person=submission.person,
        person_name=waiting.person_name,
        board=submission.board,
        task_version=submission.task_version,
        gpu=waiting.gpu,
        value=value,
        submitted_at=submission.created_at,
        rival=waiting.rival,
    )
    return await contest_of(tx, new, own)


async def order(
    tx: Store, waiting: ConfirmationId, rival: SubmissionId, alone: SubmissionId | None = None
) -> None:
    """Queue the run that compares with this rival, or judges one of the two alone."""
    system = await tx.people.ensure(SYSTEM_IDENTITY, SYSTEM_NAME)
    await tx.confirmations.order(waiting, rival, system.id, alone=alone)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A comparison with its rival, and the evaluation of its last run, if there is one."""

    tx: Store
    confirmation: Confirmation
    rival: SubmissionId
    evaluation: Evaluation | None

    async def go_on(self, task: TaskDefinition) -> bool:
        """Decide, or order the next run; return whether there is one."""
        one, reading = self.confirmation, read(task, self.evaluation)
        if one.alone is not None:
            return await self._after_alone(one.alone, failed=reading is Reading.FAILED)
        if reading is Reading.FAILED and one.final is None:
            return await self._refuse()
        comparison = None if self.evaluation is None else self.evaluation.comparison
        if reading is Reading.MADE and comparison is not None:
            return await self._settle(task, comparison.benchmarks)
        return await self._repeat(reading)

    async def _refuse(self) -> bool:
        """End the confirmation of a run that failed in it: the run is not ranked."""
        one = self.confirmation
        reason = (
            f"it passed at first, but failed when it was compared with #{self.rival}: "
            f"{self._failure()}"
        )
        await self.tx.confirmations.settle(one.id, ConfirmationState.REFUSED, reason=reason)
        await self.tx.confirmations.refuse(one)
        return False

    def _failure(self) -> str:
        """Return why the run failed, in words that everybody may read."""
        if self.evaluation is None:
            return ""
        words = self.evaluation.verdict.replace("_", " ")
        message = disclosed(self.evaluation).message
        return f"{words}: {message}" if message else words

    async def _settle(self, task: TaskDefinition, ratios: tuple[Ratio, ...]) -> bool:
        """Decide by the ratio that was measured."""
        tx, one = self.tx, self.confirmation
        holder = await _score_of(tx, self.rival, one.gpu)
        stored = await tx.results.evaluations(self.rival)
        measured = next((each.evaluation for each in stored if each.gpu == one.gpu), None)
        if holder is None or measured is None:
            return await self._drop(f"#{self.rival} is not ranked any more")
        ratio = combined(task, holder.value, measured, ratios)
        await tx.confirmations.settle(one.id, ratio.outcome, ratio=ratio)
        if one.held is not None:
            again = len(await tx.confirmations.of(one.submission)) > 1
            found = scaled(holder.value, ratio)
            value = settled(one.held, found, again=again)
            await self._place(value, self.rival if value == found else None)
        return False

    async def _place(self, value: ScoreValue, rival: SubmissionId | None) -> None:
        """Rank a run with this value, unless it still has to be compared with another holder."""
        decided = replace(self.confirmation, rival=rival)
        further = await present_contest(self.tx, decided, value)
        if further is None:
            await self.tx.confirmations.enter(decided, value, rival)
        else:
            await self.tx.confirmations.follow(decided, value, rival, further.place)

    async def _drop(self, reason: str) -> bool:
        """End a comparison with one who is not ranked; a new run meets the next holder."""
        one = self.confirmation
        await self.tx.confirmations.settle(one.id, ConfirmationState.DROPPED, reason=reason)
        if one.held is not None:
            await self._place(one.held, None)
        return False

    async def _repeat(self, reading: Reading) -> bool:
        """Go on after a run without a ratio: whoever failed is judged again alone first."""
        one = self.confirmation
        counted = replace(one, attempts=one.attempts + 1)
        await self.tx.confirmations.count(one.id, counted.attempts, one.failures)
        failed = {Reading.FAILED: one.submission, Reading.RIVAL_FAILED: self.rival}.get(reading)
        if failed is None:
            return await replace(self, confirmation=counted).compare_again()
        await order(self.tx, one.id, self.rival, failed)
        return True

    async def compare_again(self) -> bool:
        """Compare the same two again, or give up: then the holder is not displaced."""
        tx, one = self.tx, self.confirmation
        if one.attempts < MOST_ATTEMPTS:
            await order(tx, one.id, self.rival)
            return True
        reason = f"{one.attempts} runs could not compare it with #{self.rival}"
        await tx.confirmations.settle(one.id, ConfirmationState.UNDECIDED, reason=reason)
        subject = f"submission {one.submission} on {one.gpu}"
        await tx.audit.record(None, UNDECIDED, subject, reason)
        if one.held is not None:
            holder = await _score_of(tx, self.rival, one.gpu)
            value = one.held if holder is None else level(one.held, holder.value)
            await tx.confirmations.enter(one, value)
        return False

    async def _after_alone(self, alone: SubmissionId, *, failed: bool) -> bool:
        """Go on after one of the two was judged alone; it loses its place if it fails for good."""
        tx, one = self.tx, self.confirmation
        if not failed:
            return await self.compare_again()
        failures = one.failures + 1
        await tx.confirmations.count(one.id, one.attempts, failures)
        if failures < MOST_FAILURES:
            await order(tx, one.id, self.rival, alone)
            return True
        reason = f"it failed in a comparison, and {failures} times alone: {self._failure()}"
        await tx.moderation.exclude(Exclusion(alone, ExclusionKind.DISQUALIFIED, reason))
        await tx.audit.record(None, ExclusionKind.DISQUALIFIED, f"submission {alone}", reason)
        return await self._drop(f"#{alone} is not ranked any more: {reason}")


async def decide(tx: Store, running: Confirmation) -> bool:
    """Decide by the last run of a comparison; return whether the same two are still compared."""
    version = await tx.boards.version(running.task_version)
    if running.run is None or running.rival is None or version is None:
        return False
    jobs = await tx.jobs.of(running.run)
    if any(job.state not in FINAL_STATES for job in jobs):
        return True
    stored = await tx.results.evaluations(running.run)
    evaluation = stored[0].evaluation if stored else None
    return await _Meeting(tx, running, running.rival, evaluation).go_on(version.definition)


async def _score_of(tx: Store, submission: SubmissionId, gpu: str) -> Score | None:
    """Return a submission's score, unless it does not count any more."""
    found = await tx.submissions.get(submission)
    if found is None:
        return None
    scores = await tx.results.scores_of(found.person, found.task_version, gpu)
    return next((each for each in scores if each.submission == submission), None)

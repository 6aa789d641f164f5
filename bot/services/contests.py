"""Finds the runs that take one of the first places from another person, and holds them back.

Call this in the transaction that changes the leaderboard: when a run is judged, and when another
run of its person is taken off the leaderboard or put back.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.domain.confirmation import (
    MOST_PAIRS,
    Confirmation,
    ConfirmationState,
    Contest,
    can_confirm,
    contest,
)
from bot.domain.ids import JobId, SubmissionId, TaskVersionId
from bot.domain.scoring import Entrant, Score, ScoreValue, by_speed, by_submission_time, score
from bot.domain.submission import Exclusion, Submission
from bot.ports import Store


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


async def exclude(tx: Store, exclusion: Exclusion) -> None:
    """Take a run off its leaderboards; hold its person's next ones back if they are contested."""
    off = await _scores_of(tx, exclusion.submission)
    await tx.moderation.exclude(exclusion)
    for gone in off:
        await _hold_own(tx, gone)


async def include(tx: Store, submission: SubmissionId) -> bool:
    """Rank a run again, or hold it back if it is contested; False when it was not excluded."""
    included = await tx.moderation.include(submission)
    for back in await _scores_of(tx, submission) if included else ():
        await _hold_own(tx, back)
    return included


async def _scores_of(tx: Store, number: SubmissionId) -> tuple[Score, ...]:
    """Return a submission's scores on the leaderboards where it is ranked."""
    made = await tx.submissions.get(number)
    if made is None:
        return ()
    own = [
        await tx.results.scores_of(made.person, made.task_version, gpu) for gpu in sorted(made.gpus)
    ]
    return tuple(each for scores in own for each in scores if each.submission == number)


async def _hold_own(tx: Store, changed: Score) -> None:
    """Hold a person's best run back if it is contested, and then each next one that is.

    A run that was slower than its person's best was ranked without a comparison, because it took no
    place from another person. Once the best is gone, it takes places of people who were ranked
    before it. Nothing is held back on a leaderboard where nothing was ever confirmed.
    """
    scores = await tx.results.scores_of(changed.person, changed.task_version, changed.gpu)
    own = sorted(scores, key=by_speed)
    if not own or (by_speed(own[0]) < by_speed(changed) and not changed.met):
        return
    everyone = await tx.results.entrants(changed.task_version, changed.gpu)
    others = [each for each in everyone if each.best.person != changed.person]
    confirms = changed.met or any(each.best.met for each in others)
    if not confirms and not await tx.confirmations.of(changed.submission):
        return
    contested: list[Score] = []
    stands: tuple[Score, ...] = ()
    for each in own:
        if await contest_of(tx, each, (), _there_before(each, others)) is None:
            stands = (each,)
            break
        contested.append(each)
    for each in contested:
        found = await contest_of(tx, each, stands, others)
        jobs = await tx.jobs.of(each.submission)
        job = next((one.id for one in jobs if one.gpu == each.gpu), None)
        if found is not None and job is not None:
            await tx.confirmations.hold(job, found.place)


def _there_before(run: Score, others: Sequence[Entrant]) -> list[Entrant]:
    """Return the people who may have been ranked before this run was submitted."""
    since = by_submission_time(run)
    return [each for each in others if each.attempts > 1 or by_submission_time(each.best) < since]


async def contest_of(
    tx: Store, new: Score, own: Sequence[Score], everyone: Sequence[Entrant] | None = None
) -> Contest | None:
    """Return the place that a score takes from another person now; `own` has its person's scores.

    `everyone` has the people from whom it may take the place: by default all of the leaderboard.
    """
    if everyone is None:
        everyone = await tx.results.entrants(new.task_version, new.gpu)
    earlier = [each for each in own if each.submission != new.submission]
    history = await tx.confirmations.of(new.submission)
    known = [(each.rival, each) for each in history if each.rival and each.gpu == new.gpu]
    gone = [rival for rival, each in known if each.state is ConfirmationState.DROPPED]
    compared = {rival for rival, each in known if not each.is_pending}.difference(gone)
    if len(compared) >= MOST_PAIRS:
        return None
    aside = {new.person, *await tx.people.deleted()}  # deleted people have no sources
    if len(gone) >= MOST_PAIRS:  # a person may withdraw one run after the other to delay this one
        aside |= {each.person for each in await tx.submissions.several(gone)}
    others = [each for each in everyone if each.best.person not in aside]
    pairs = tuple((rival, each.ratio) for rival, each in known if each.ratio is not None)
    best = min(earlier, key=by_speed, default=None)
    return contest(replace(new, met=pairs), others, best, compared)


async def present_contest(
    tx: Store, waiting: Confirmation, value: ScoreValue | None
) -> Contest | None:
    """Return the place that a held run would take now with this value, and its holder."""
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
    )
    return await contest_of(tx, new, own)


async def measured_ns(
    tx: Store, task_version: TaskVersionId, submission: SubmissionId, gpu: str
) -> float | None:
    """Return the time of a run in its own evaluation, without a rival; None without a score."""
    version = await tx.boards.version(task_version)
    stored = await tx.results.evaluations(submission)
    made = next((each.evaluation for each in stored if each.gpu == gpu), None)
    value = None if version is None or made is None else score(version.definition, made)
    return None if value is None else value.time_ns


async def fastest_ns(tx: Store, ranked: Iterable[Score]) -> float | None:
    """Return the least time of these runs, each with the longer of its ranked and measured time.

    Ranked times can be products of ratios. With these alone, people whose kernels are slow on
    purpose in comparisons with each other could shorten the first time again and again.
    """
    least: float | None = None
    for each in sorted(ranked, key=lambda each: each.value.time_ns):
        if least is not None and each.value.time_ns >= least:
            break
        own = await measured_ns(tx, each.task_version, each.submission, each.gpu) or 0.0
        least = min(least or math.inf, max(own, each.value.time_ns))
    return least


async def compared_now(store: Store, waiting: Iterable[Confirmation]) -> tuple[Confirmation, ...]:
    """Return the confirmations that can be made now, without banned people and excluded runs."""
    banned = await store.moderation.bans()
    return tuple(
        [
            each
            for each in waiting
            if each.person not in banned
            and await store.moderation.exclusion_of(each.submission) is None
        ]
    )

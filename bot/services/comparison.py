"""Compares two submissions, and the benchmarks of one with those of others.

`compare` accepts any two submission numbers and refuses hidden sources. For those, an admin's looks
are recorded first, and `compare_sources` gets the sources.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from bot.domain.board import NOBODY, Board, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId, is_system_submission
from bot.domain.records import ComparedSubmission, HistoryEntry, SubmissionComparison
from bot.domain.reference_times import OtherRun, OtherTimes, Times, work_by_spec
from bot.domain.scoring import Standing, judged
from bot.domain.status import SubmissionStatus
from bot.domain.submission import Submission
from bot.domain.text_diff import BoundedMatcher, StepBudget, lines_of, side_by_side, unified
from bot.ports import Clock, Store
from bot.services.history import history_of
from bot.services.lookup import board_of, find_submission, visible_submission
from bot.services.standings import leaderboard, task_version
from bot.services.status import Source, shows_sources, source
from runners.contract.evaluation import Evaluation

MOST_LINES = 10_000
"""The most lines of a source that is compared; longer comparisons are unreadable."""
_STEPS = 2_000_000
"""The most steps of one comparison; a million take about 0.15 s."""


async def compare(
    store: Store, clock: Clock, viewer: Viewer, *, first: SubmissionId, second: SubmissionId
) -> SubmissionComparison:
    """Compare two submissions; UserError when a source is hidden or the boards differ."""
    before, after = [await source(store, clock, viewer, number) for number in (first, second)]
    return await compare_sources(store, before, after)


async def compare_sources(store: Store, before: Source, after: Source) -> SubmissionComparison:
    """Compare two submissions whose sources were read; UserError when the boards differ."""
    sides = [await _side(store, each.submission) for each in (before, after)]
    if sides[0].submission.board != sides[1].submission.board:
        raise UserError(
            "two-boards",
            "these submissions belong to different boards; choose two of the same board",
        )
    if before.text == after.text:
        return SubmissionComparison(sides[0], sides[1], "", ())
    diffs = await asyncio.to_thread(_differences, before, after)
    if diffs is None:
        return SubmissionComparison(sides[0], sides[1], "", (), too_long=True)
    return SubmissionComparison(sides[0], sides[1], *diffs)


def _differences(
    before: Source, after: Source
) -> tuple[str, tuple[tuple[str, str, str], ...]] | None:
    """Return both diffs, unified and side by side; None when the sources are too long."""
    left, right = lines_of(before.text), lines_of(after.text)
    if max(len(left), len(right)) > MOST_LINES:
        return None
    steps = StepBudget(_STEPS)
    matcher = BoundedMatcher(left, right, steps)
    # First, because `unified` groups the matcher's list of changes and so truncates its ends.
    rows = tuple(_side_by_side(matcher, steps))
    names = [f"#{each.submission} {each.file_name}" for each in (before, after)]
    return "".join(f"{line}\n" for line in unified(matcher, *names)), rows


def _side_by_side(matcher: BoundedMatcher, steps: StepBudget) -> Iterator[tuple[str, str, str]]:
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        old_lines, new_lines = matcher.before[i1:i2], matcher.after[j1:j2]
        if tag == "equal":
            yield from ((line, " ", line) for line in old_lines)
            continue
        for old, new in side_by_side(old_lines, new_lines, steps):
            yield old or "", _mark(old, new), new or ""


def _mark(old: str | None, new: str | None) -> str:
    """Return the mark between two lines shown side by side."""
    if old == new:
        return " "
    if old is None:
        return ">"
    return "<" if new is None else "|"


async def _side(store: Store, number: SubmissionId) -> ComparedSubmission:
    submission = await find_submission(store, number)
    outcomes = await store.results.outcomes((number,))
    verdicts = {each.gpu: each.verdict for each in outcomes}
    scores = {each.gpu: each.score for each in outcomes if each.score is not None}
    return ComparedSubmission(submission, verdicts, scores)


_NEWEST = 30
_FASTEST = 20


@dataclass(frozen=True, slots=True)
class Comparable:
    """Submissions to the same board whose sources the viewer may read.

    `versions` are by the same person, newest first; `own` are the viewer's, if that is another
    person; `others` has the best submission of each other person, fastest first.
    """

    versions: tuple[HistoryEntry, ...] = ()
    own: tuple[HistoryEntry, ...] = ()
    others: tuple[Standing, ...] = ()


async def comparable(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> Comparable:
    """Return what to compare a submission with; UserError `unknown-submission` if it is hidden."""
    submission = await visible_submission(store, viewer, number)
    board = await board_of(store, submission)
    is_own = submission.person == viewer.person
    shown = board.visible_to(viewer) and shows_sources(board, clock, submission)
    if not (is_own or shown):
        return Comparable()
    earlier = await _earlier(store, submission.person, board, number)
    versions = tuple(each for each in earlier if is_own or each.submission.is_ranked)
    no_own_list = is_own or viewer.person == NOBODY
    own = () if no_own_list else await _earlier(store, viewer.person, board, number)
    listed = {submission.person, viewer.person}
    others = await _fastest(store, board, submission.gpus[0], without=listed) if shown else ()
    return Comparable(versions, own, others)


async def _earlier(
    store: Store, person: PersonId, board: Board, number: SubmissionId
) -> tuple[HistoryEntry, ...]:
    """Return a person's newest submissions to the board, without the compared one."""
    earlier = await history_of(store, person, board, limit=_NEWEST)
    return tuple(
        each
        for each in earlier
        if each.submission.id != number and not is_system_submission(each.submission.id)
    )


async def _fastest(
    store: Store, board: Board, gpu: str, *, without: set[PersonId]
) -> tuple[Standing, ...]:
    """Return the best scores of other people than these on a GPU type, fastest first."""
    entries = (await leaderboard(store, board.task_version, gpu)).entries
    others = [each for each in entries if each.score.person not in without]
    return tuple(others[:_FASTEST])


def times_of(evaluation: Evaluation) -> Times:
    """Return the judge's time of each benchmark that passed."""
    return {
        each.spec: judged(each.measurement)
        for each in evaluation.cases
        if each.measurement is not None
    }


async def other_times(store: Store, viewer: Viewer, run: SubmissionStatus, gpu: str) -> OtherTimes:
    """Return the times of the reference, the leader and the viewer's best, if they are other runs.

    A viewer who no longer sees the board gets none, not even for their own submission.
    """
    submission = run.submission
    if not run.board.visible_to(viewer):
        return OtherTimes()
    task = (await task_version(store, submission.task_version)).definition
    others = [each async for each in _others(store, viewer.person, submission, gpu) if each.times]
    return OtherTimes(tuple(others), work_by_spec(task, gpu), task)


async def _others(
    store: Store, viewer: PersonId, submission: Submission, gpu: str
) -> AsyncIterator[OtherRun]:
    reference = await store.references.of(submission.task_version, gpu)
    if reference is not None and reference.submission and reference.value:
        yield OtherRun("reference", await _times(store, reference.submission, gpu))
    entries = (await leaderboard(store, submission.task_version, gpu)).entries
    own = [each for each in entries[1:] if each.score.person == viewer]
    for name, found in (("first", entries[:1]), ("your best", own)):
        for each in found:
            number = each.score.submission
            if number != submission.id:
                yield OtherRun(name, await _times(store, number, gpu), number)


async def _times(store: Store, number: SubmissionId, gpu: str) -> Times:
    return (await times_by_gpu(store, number)).get(gpu, {})


async def times_by_gpu(store: Store, number: SubmissionId) -> dict[str, Times]:
    """Return a submission's times by GPU type; the caller checks what the viewer may see."""
    stored = await store.results.evaluations(number)
    return {each.gpu: times_of(each.evaluation) for each in stored}

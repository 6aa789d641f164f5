"""Puts two submissions side by side: their times, and how their sources differ."""

import asyncio
from collections.abc import Iterator

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import ComparedSubmission, SubmissionComparison
from bot.domain.text_diff import BoundedMatcher, Steps, lines_of, side_by_side, unified
from bot.ports import Clock, Store
from bot.services.lookup import find_submission
from bot.services.sources import Source, source

MOST_LINES = 10_000
"""Of a source that is compared; nobody reads more of them side by side."""
_STEPS = 2_000_000


async def compare(
    store: Store, clock: Clock, viewer: Viewer, *, first: SubmissionId, second: SubmissionId
) -> SubmissionComparison:
    """UserError when the viewer may not see both sources, or they are of different boards."""
    sources = [await source(store, clock, viewer, number) for number in (first, second)]
    sides = [await _side(store, number) for number in (first, second)]
    if sides[0].submission.board != sides[1].submission.board:
        raise UserError("two-boards", "these are submissions to different leaderboards")
    before, after = sources
    if before.text == after.text:
        return SubmissionComparison(sides[0], sides[1], "", ())
    found = await asyncio.to_thread(_differences, before, after)
    if found is None:
        return SubmissionComparison(sides[0], sides[1], "", (), too_long=True)
    return SubmissionComparison(sides[0], sides[1], *found)


def _differences(
    before: Source, after: Source
) -> tuple[str, tuple[tuple[str, str, str], ...]] | None:
    """Unified and side by side; None where the sources are too long."""
    left, right = lines_of(before.text), lines_of(after.text)
    if max(len(left), len(right)) > MOST_LINES:
        return None
    steps = Steps(_STEPS)
    matcher = BoundedMatcher(left, right, steps)
    beside = tuple(
        _beside(matcher, steps)
    )  # first: Python's groups cut off its own list at both ends
    names = [f"#{each.submission} {each.file_name}" for each in (before, after)]
    return "".join(f"{line}\n" for line in unified(matcher, *names)), beside


def _beside(matcher: BoundedMatcher, steps: Steps) -> Iterator[tuple[str, str, str]]:
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        old_lines, new_lines = matcher.before[i1:i2], matcher.after[j1:j2]
        if tag == "equal":
            yield from ((line, " ", line) for line in old_lines)
            continue
        for old, new in side_by_side(old_lines, new_lines, steps):
            yield old or "", _mark(old, new), new or ""


def _mark(old: str | None, new: str | None) -> str:
    """How two lines that stand side by side differ."""
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

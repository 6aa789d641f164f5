"""Puts two submissions side by side: their times, and how their sources differ."""

import difflib
from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.score import ScoreValue
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services.lookup import find_submission
from bot.services.source import source


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two, with its score on each GPU type that it was ranked on."""

    submission: Submission
    scores: dict[str, ScoreValue]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two submissions to one board; `difference` is a unified diff of their sources."""

    first: Side
    second: Side
    difference: str


async def compare(
    store: Store, clock: Clock, viewer: Viewer, *, first: SubmissionId, second: SubmissionId
) -> Comparison:
    """UserError when the viewer may not see both sources, or they are of different boards."""
    sources = [await source(store, clock, viewer, number) for number in (first, second)]
    sides = [await _side(store, number) for number in (first, second)]
    if sides[0].submission.board != sides[1].submission.board:
        raise UserError("two-boards", "these are submissions to different leaderboards")
    before, after = sources
    lines = difflib.unified_diff(
        before.text.splitlines(keepends=True),
        after.text.splitlines(keepends=True),
        f"#{before.submission} {before.file_name}",
        f"#{after.submission} {after.file_name}",
    )
    return Comparison(sides[0], sides[1], "".join(_ended(line) for line in lines))


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


async def _side(store: Store, number: SubmissionId) -> Side:
    submission = await find_submission(store, number)
    outcomes = await store.results.outcomes((number,))
    scores = {each.gpu: each.score for each in outcomes if each.score is not None}
    return Side(submission, scores)

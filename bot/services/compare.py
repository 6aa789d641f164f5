"""Puts two submissions side by side: their times, and how their sources differ."""

import asyncio
import difflib
from dataclasses import dataclass
from itertools import zip_longest

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.score import ScoreValue
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services.lookup import find_submission
from bot.services.source import Source, source

MOST_LINES = 5_000
"""Of a source that is compared: the time for it grows with the square, and 80,000 take a minute."""


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
    beside: tuple[tuple[str, str, str], ...]
    """Each line of the first, ` ` or `|` `<` `>` as `diff --side-by-side` has it, and the second's.

    Empty where the sources are the same, or too long to be compared.
    """
    too_long: bool = False
    """Whether a source has so many lines that comparing them could take minutes."""


async def compare(
    store: Store, clock: Clock, viewer: Viewer, *, first: SubmissionId, second: SubmissionId
) -> Comparison:
    """UserError when the viewer may not see both sources, or they are of different boards."""
    sources = [await source(store, clock, viewer, number) for number in (first, second)]
    sides = [await _side(store, number) for number in (first, second)]
    if sides[0].submission.board != sides[1].submission.board:
        raise UserError("two-boards", "these are submissions to different leaderboards")
    before, after = sources
    if before.text == after.text:
        return Comparison(sides[0], sides[1], "", ())
    if max(len(each.text.splitlines()) for each in sources) > MOST_LINES:
        return Comparison(sides[0], sides[1], "", (), too_long=True)
    difference = await asyncio.to_thread(_unified, before, after)
    beside = await asyncio.to_thread(_beside, before, after)
    return Comparison(sides[0], sides[1], difference, beside)


def _unified(before: Source, after: Source) -> str:
    lines = difflib.unified_diff(
        before.text.splitlines(keepends=True),
        after.text.splitlines(keepends=True),
        f"#{before.submission} {before.file_name}",
        f"#{after.submission} {after.file_name}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _beside(before: Source, after: Source) -> tuple[tuple[str, str, str], ...]:
    left, right = before.text.splitlines(), after.text.splitlines()
    return tuple(
        (old or "", _mark(old, new), new or "")
        for _, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left, right).get_opcodes()
        for old, new in zip_longest(left[i1:i2], right[j1:j2])
    )


def _mark(old: str | None, new: str | None) -> str:
    """How two lines that stand side by side differ."""
    if old == new:
        return " "
    if old is None:
        return ">"
    return "<" if new is None else "|"


async def _side(store: Store, number: SubmissionId) -> Side:
    submission = await find_submission(store, number)
    outcomes = await store.results.outcomes((number,))
    scores = {each.gpu: each.score for each in outcomes if each.score is not None}
    return Side(submission, scores)

"""`/submissions/N/compare?with=M`: two submissions side by side, their times and their sources.

Changed words are marked, and long equal parts are folded. Both sources are untrusted: only as much
is drawn as a browser can show, and the page says what is left out.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby, takewhile
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from markupsafe import Markup

from bot.domain.accounts import Person
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import ComparedSubmission, SubmissionComparison
from bot.domain.submission import Submission, SubmissionState
from bot.domain.text_diff import SIMILAR, BoundedMatcher, StepBudget
from bot.reports.comparison import names, times, why_no_diff
from bot.reports.escaping import clean
from bot.reports.submission import VERDICT_WORDS
from bot.services.comparison import compare
from bot.web import auth, rendering
from bot.web.context import WebContext, context_of
from runners.contract.verdict import Verdict

router = APIRouter(prefix="/submissions")
WAIT_S = 10.0
"""How long, in seconds, a comparison waits for earlier ones."""
CONTEXT = 3
"""How many unchanged lines are shown before and after each change."""
_LEAST_FOLD = 2
"""Fewer unchanged lines than this are shown, not folded."""
LONGEST = 1_000
"""The most characters of a line that are drawn."""
MOST = 400_000
"""The most characters drawn in total; each row counts `_PER_ROW` more for its markup."""
_PER_ROW = 60
_WORD_STEPS = 200_000
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, and whether it differs from the other side."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line with its number; `beyond` counts the characters at its end that are not drawn."""

    number: int
    pieces: tuple[Piece, ...]
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A pair of lines side by side; if both exist, `same` says whether they are equal."""

    old: DiffLine | None
    new: DiffLine | None
    same: bool


@dataclass(frozen=True, slots=True)
class Section:
    """Consecutive rows; a `folded` section is unchanged, and has no rows if they do not fit."""

    rows: tuple[Row, ...]
    count: int
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """All sections in order, and how many lines with or near a change are omitted."""

    sections: tuple[Section, ...]
    removed: int
    added: int
    left_out: int = 0


LinePair = tuple[str, str, str]
"""A line of the first, a mark, and a line of the second: see `bot.services.comparison`."""
_NumberedPair = tuple[int, int, LinePair]
"""The same with both line numbers."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A section before its rows are limited."""

    lines: Sequence[_NumberedPair]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A compared submission with its submitter."""

    submission: Submission
    person: Person | None
    results: tuple[tuple[str, str, str], ...]
    """GPU type, result in words, and tone."""


@dataclass(frozen=True, slots=True)
class _RenderedDiff:
    """A comparison, and its diff if it can be shown."""

    comparison: SubmissionComparison
    difference: Difference | None = None
    text: Markup | None = None


@router.get("/{number}/compare")
async def comparison(
    request: Request,
    number: Annotated[int, Path(ge=-(1 << 62), lt=1 << 62)],
    viewer: auth.AnyViewer,
    other: Annotated[str, Query(alias="with", max_length=20)],
) -> Response:
    """Show the results of both, and where their sources differ."""
    context = context_of(request)
    rendered = await _compare_alone(context, viewer, SubmissionId(number), _number_in(other))
    compared = rendered.comparison
    board = await context.store.boards.get(compared.first.submission.board)
    values: dict[str, Any] = {
        "title": " and ".join(names(compared)),
        "board": board,
        "sides": [
            await _compared_side(context, each) for each in (compared.first, compared.second)
        ],
        "times": list(times(compared)),
        "words": why_no_diff(compared),
        "difference": rendered.difference,
        "drawn": rendered.text,
    }
    return await rendering.page(request, viewer, "comparison.html", values)


async def _compare_alone(
    context: WebContext, viewer: Viewer, first: SubmissionId, second: SubmissionId
) -> _RenderedDiff:
    """Run one comparison at a time: each may keep the interpreter busy for up to 0.4 s."""
    try:
        async with asyncio.timeout(WAIT_S):
            await context.comparison_lock.acquire()
    except TimeoutError as error:
        soon = "in a few seconds"
        moment = context.clock.now() + timedelta(seconds=WAIT_S)
        message = f"many people are comparing submissions right now; try again {soon}"
        raise UserError("rate-limit", message, {soon: moment}) from error
    try:
        compared = await compare(context.store, context.clock, viewer, first=first, second=second)
        if why_no_diff(compared) is not None:
            return _RenderedDiff(compared)
        return await asyncio.to_thread(_render_diff, compared)
    finally:
        context.comparison_lock.release()


def _render_diff(compared: SubmissionComparison) -> _RenderedDiff:
    lines = difference(compared.side_by_side)
    text = rendering.render("parts/difference.html", {"it": lines, "names": _titles(compared)})
    return _RenderedDiff(compared, lines, Markup(text))  # noqa: S704 - the template has escaped it


def _titles(compared: SubmissionComparison) -> list[str]:
    sides = (compared.first.submission, compared.second.submission)
    return [f"#{each.id} {each.file_name}" for each in sides]


async def _compared_side(context: WebContext, side: ComparedSubmission) -> ComparedSide:
    submission = side.submission
    results = [(gpu, *_verdict_words(verdict)) for gpu, verdict in sorted(side.verdicts.items())]
    if submission.state is not SubmissionState.FINISHED:
        results += [
            (gpu, submission.state.value, "") for gpu in submission.gpus if gpu not in side.verdicts
        ]
    person = await context.store.people.get(submission.person)
    return ComparedSide(submission, person, tuple(results))


def _verdict_words(verdict: Verdict) -> tuple[str, str]:
    return VERDICT_WORDS[verdict], "good" if verdict is Verdict.PASSED else "bad"


def _number_in(text: str) -> SubmissionId:
    """Return the number that a person typed, such as `#17`."""
    digits = text.strip().removeprefix("#")
    if not digits.isascii() or not digits.isdigit():
        raise UserError("bad-number", "name the other submission by its number, such as 17")
    return SubmissionId(int(digits))


def difference(pairs: Sequence[LinePair]) -> Difference:
    """Return how the lines are drawn."""
    stretches = list(_stretches(_with_numbers(pairs)))
    fitting = _fitting(stretches)
    steps = StepBudget(_WORD_STEPS)
    sections = tuple(
        Section(
            tuple(_row(*line, steps) for line in lines),
            len(each.lines) if each.folded else len(lines),
            each.folded,
        )
        for each, lines in zip(stretches, fitting, strict=True)
    )
    marks = Counter(mark for _, mark, _ in pairs)
    changed = sum(len(each.lines) for each in stretches if not each.folded)
    left_out = changed - sum(each.count for each in sections if not each.folded)
    return Difference(sections, marks["|"] + marks["<"], marks["|"] + marks[">"], left_out)


def _with_numbers(pairs: Iterable[LinePair]) -> Iterator[_NumberedPair]:
    old = new = 0
    for each in pairs:
        old += each[1] != ">"
        new += each[1] != "<"
        yield old, new, each


def _stretches(lines: Iterable[_NumberedPair]) -> Iterator[_Stretch]:
    """Yield changes with their context, and the folded stretches between them."""
    runs = [(same, list(run)) for same, run in groupby(lines, key=lambda each: each[2][1] == " ")]
    shown: list[_NumberedPair] = []
    for number, (same, run) in enumerate(runs):
        head = CONTEXT if number else 0
        tail = CONTEXT if number < len(runs) - 1 else 0
        if not same or len(run) - head - tail < _LEAST_FOLD:
            shown += run
            continue
        end = len(run) - tail
        shown += run[:head]
        if shown:
            yield _Stretch(shown)
        yield _Stretch(run[head:end], folded=True)
        shown = run[end:]
    if shown:
        yield _Stretch(shown)


def _fitting(stretches: Sequence[_Stretch]) -> list[Sequence[_NumberedPair]]:
    """Return the lines of each stretch that fit: changes first, then whole folded stretches."""
    budget = StepBudget(MOST)
    lines: list[Sequence[_NumberedPair]] = [() for _ in stretches]
    for number, each in enumerate(stretches):
        if not each.folded:
            lines[number] = list(takewhile(lambda line: budget.take(_size(line)), each.lines))
    for number, each in enumerate(stretches):
        if each.folded and budget.take(sum(map(_size, each.lines))):
            lines[number] = each.lines
    return lines


def _size(line: _NumberedPair) -> int:
    old, _, new = line[2]
    return _PER_ROW + min(LONGEST, len(old)) + min(LONGEST, len(new))


def _row(old_number: int, new_number: int, pair: LinePair, steps: StepBudget) -> Row:
    """Return a row with words marked, control characters removed and lines cut."""
    mark = pair[1]
    old = None if mark == ">" else _line(old_number, pair[0])
    new = None if mark == "<" else _line(new_number, pair[2])
    if mark != "|" or old is None or new is None:
        return Row(old, new, same=mark == " ")
    before, after = (_WORDS.findall(each.pieces[0].text) for each in (old, new))
    matcher = BoundedMatcher(before, after, steps)
    if matcher.ratio() < SIMILAR:
        return Row(old, new, same=False)
    codes = matcher.get_opcodes()
    left = _pieces((tag, before[i1:i2]) for tag, i1, i2, _, _ in codes)
    right = _pieces((tag, after[j1:j2]) for tag, _, _, j1, j2 in codes)
    return Row(replace(old, pieces=left), replace(new, pieces=right), same=False)


def _line(number: int, text: str) -> DiffLine:
    cleaned = clean(text)
    return DiffLine(number, (Piece(cleaned[:LONGEST]),), max(0, len(cleaned) - LONGEST))


def _pieces(parts: Iterable[tuple[str, Sequence[str]]]) -> tuple[Piece, ...]:
    return tuple(Piece("".join(words), tag != "equal") for tag, words in parts if words)

"""Prepares two sources to be drawn side by side: marks changed words, folds long equal parts.

Both are untrusted: only as much is drawn as a browser can show. `Difference.left_out` counts the
lines that are not drawn although they are changed or next to a change.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, takewhile

from bot.domain.text_diff import SIMILAR, BoundedMatcher, StepBudget
from bot.reports.escaping import clean

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


Colored = tuple[tuple[str, str], ...]
"""The parts of a line: of each, its class in the style sheet, perhaps empty, and its text."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line; `color` is a class of the style sheet, for parts that are not `changed`."""

    text: str
    changed: bool = False
    color: str = ""


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


def colored(it: Difference, colors: Sequence[Sequence[Colored]]) -> Difference:
    """Return the difference with the colors of both sources, by their lines."""
    left, right = colors
    sections = tuple(
        replace(
            each,
            rows=tuple(
                replace(row, old=_colored(row.old, left), new=_colored(row.new, right))
                for row in each.rows
            ),
        )
        for each in it.sections
    )
    return replace(it, sections=sections)


def _colored(line: DiffLine | None, colors: Sequence[Colored]) -> DiffLine | None:
    """Return the line with its colors; without them if they are of another text."""
    if line is None or line.number > len(colors):
        return line
    parts = colors[line.number - 1]
    text = "".join(each.text for each in line.pieces)
    if not "".join(part for _, part in parts).startswith(text):
        return line
    ends = list(accumulate(len(part) for _, part in parts))
    at, pieces = 0, []
    for piece in line.pieces:
        end = at + len(piece.text)
        if piece.changed:
            pieces.append(piece)
            at = end
        for (color, _), stop in zip(parts, ends, strict=True):
            if at < (upto := min(stop, end)):
                pieces.append(Piece(text[at:upto], color=color))
                at = upto
    return replace(line, pieces=tuple(pieces))


def _pieces(parts: Iterable[tuple[str, Sequence[str]]]) -> tuple[Piece, ...]:
    return tuple(Piece("".join(words), tag != "equal") for tag, words in parts if words)

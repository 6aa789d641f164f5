"""The difference of two sources as it is drawn: side by side, with changed words, folded, bounded.

Both are strangers' words. Whatever they are, no more is drawn than a browser shows at once, and
what is left out is said.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from bot.domain.text_diff import ALIKE, BoundedMatcher, StepBudget
from bot.reports.escaping import clean

CONTEXT = 3
"""Unchanged lines that are shown before and after each change."""
_LEAST_FOLD = 2
"""Fewer unchanged lines are shown; folding them would save nothing."""
LONGEST = 1_000
"""Letters of a line that are drawn."""
MOST = 400_000
"""Letters that are drawn in all; each line costs some for its markup."""
_PER_ROW = 60
_WORD_STEPS = 200_000
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, and whether the other side's line has it not."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line with its number; `beyond` are the letters at its end that are not drawn."""

    number: int
    pieces: tuple[Piece, ...]
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """What stands side by side; where both sides do, `same` says whether they are the same."""

    old: DiffLine | None
    new: DiffLine | None
    same: bool


@dataclass(frozen=True, slots=True)
class Section:
    """Some rows; `folded` ones are unchanged, and have no rows where there is no room for them."""

    rows: tuple[Row, ...]
    count: int
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """All sections in order, and of how many lines with a change or near one there is no more."""

    sections: tuple[Section, ...]
    removed: int
    added: int
    left_out: int = 0


Beside = tuple[str, str, str]
"""A line of the first, how it differs, and one of the second: see `bot.services.comparison`."""
_Numbered = tuple[int, int, Beside]
"""The same with the numbers that both lines have, or would have."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A section before it is known whether there is room for it."""

    lines: Sequence[_Numbered]
    folded: bool = False


def difference(beside: Sequence[Beside]) -> Difference:
    """How the lines are drawn."""
    stretches = list(_stretches(_numbered(beside)))
    fitting = _within(stretches)
    steps = StepBudget(_WORD_STEPS)
    sections = tuple(
        Section(
            tuple(_row(*line, steps) for line in lines),
            len(each.lines) if each.folded else len(lines),
            each.folded,
        )
        for each, lines in zip(stretches, fitting, strict=True)
    )
    marks = Counter(mark for _, mark, _ in beside)
    changed = sum(len(each.lines) for each in stretches if not each.folded)
    left_out = changed - sum(each.count for each in sections if not each.folded)
    return Difference(sections, marks["|"] + marks["<"], marks["|"] + marks[">"], left_out)


def _numbered(beside: Iterable[Beside]) -> Iterator[_Numbered]:
    old = new = 0
    for each in beside:
        old += each[1] != ">"
        new += each[1] != "<"
        yield old, new, each


def _stretches(lines: Iterable[_Numbered]) -> Iterator[_Stretch]:
    """Changes with the lines round them, and between them what is folded."""
    runs = [(same, list(run)) for same, run in groupby(lines, key=lambda each: each[2][1] == " ")]
    shown: list[_Numbered] = []
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


def _within(stretches: Sequence[_Stretch]) -> list[Sequence[_Numbered]]:
    """Of each stretch the lines that fit: changes first, then what is folded, whole or not."""
    room = StepBudget(MOST)
    kept: list[Sequence[_Numbered]] = [() for _ in stretches]
    for number, each in enumerate(stretches):
        if not each.folded:
            kept[number] = list(takewhile(lambda line: room.take(_size(line)), each.lines))
    for number, each in enumerate(stretches):
        if each.folded and room.take(sum(map(_size, each.lines))):
            kept[number] = each.lines
    return kept


def _size(line: _Numbered) -> int:
    old, _, new = line[2]
    return _PER_ROW + min(LONGEST, len(old)) + min(LONGEST, len(new))


def _row(old_number: int, new_number: int, beside: Beside, steps: StepBudget) -> Row:
    """With its words marked, without controls, and no longer than what is drawn."""
    mark = beside[1]
    old = None if mark == ">" else _line(old_number, beside[0])
    new = None if mark == "<" else _line(new_number, beside[2])
    if mark != "|" or old is None or new is None:
        return Row(old, new, same=mark == " ")
    before, after = (_WORDS.findall(each.pieces[0].text) for each in (old, new))
    matcher = BoundedMatcher(before, after, steps)
    if matcher.ratio() < ALIKE:
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

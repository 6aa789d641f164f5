"""Finds the common parts of two untrusted texts, with bounded work."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest

from typing_extensions import override

_SHORT_TEXT = 1_000
"""Up to this many parts, frequently repeated ones are compared as well."""
SIMILAR = 0.5
"""Two lines count as one changed line if they share at least this fraction of their words."""
_STEPS_PER_PAIR = 10
_COMPARED_CHARACTERS = 400
"""How many characters of a line are compared."""
_CONTEXT_LINES = 3
"""Lines of context around each change in a unified diff."""
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(slots=True)
class StepBudget:
    """How many steps are left; a million steps take about 0.15 s."""

    left: int

    def take(self, count: int) -> bool:
        """Use up this many steps; return False if fewer are left."""
        if count > self.left:
            return False
        self.left -= count
        return True


class BoundedMatcher(difflib.SequenceMatcher[str]):
    """Python's SequenceMatcher, with a limit on its steps.

    Without it, the time grows with the square of the length, and for some inputs with the cube.
    When no steps are left, the remaining text counts as different: the diff is coarser but correct.
    """

    b2j: dict[str, list[int]]
    """The positions of each part in the second text; set by `difflib`."""

    def __init__(self, before: Sequence[str], after: Sequence[str], steps: StepBudget) -> None:
        super().__init__(None, before, after, autojunk=len(after) > _SHORT_TEXT)
        self.before, self.after = before, after
        self._steps = steps
        costs = (1 + len(self.b2j.get(each, ())) for each in before)
        self._cost_before = list(accumulate(costs, initial=0))

    @override
    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """Return the longest common part of two ranges; an empty one when no steps are left."""
        end = len(self.before) if ahi is None else ahi
        if not self._steps.take(self._cost_before[end] - self._cost_before[alo]):
            return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def unified(matcher: BoundedMatcher, before: str, after: str) -> Iterator[str]:
    """Yield the lines of `diff -u`, from a matcher that has already run."""
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT_LINES)):
        if not number:
            yield from (f"--- {before}", f"+++ {after}")
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@"
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in matcher.before[a1:a2])
                continue
            yield from (f"-{line}" for line in matcher.before[a1:a2])
            yield from (f"+{line}" for line in matcher.after[b1:b2])


def _range(begin: int, end: int) -> str:
    """Return a group's range in the format of `diff -u`; an empty one names the line before it."""
    length = end - begin
    if length == 1:
        return f"{begin + 1}"
    return f"{begin + 1 if length else begin},{length}"


def lines_of(text: str) -> list[str]:
    """Return the lines without line endings, counted like editors and compilers do."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def side_by_side(
    before: Sequence[str], after: Sequence[str], steps: StepBudget
) -> Iterator[tuple[str | None, str | None]]:
    """Yield replaced lines next to their replacements, with similar ones paired.

    Between these pairs, or when no steps are left, lines are paired in order.
    """
    ends = [(-1, -1), *_similar_pairs(before, after, steps), (len(before), len(after))]
    for (i1, j1), (i2, j2) in pairwise(ends):
        if i1 >= 0:
            yield before[i1], after[j1]
        yield from zip_longest(before[i1 + 1 : i2], after[j1 + 1 : j2])


def _similar_pairs(
    before: Sequence[str], after: Sequence[str], steps: StepBudget
) -> Sequence[tuple[int, int]]:
    """Return the pairs of similar lines, in order, with the greatest total similarity."""
    if not steps.take(_STEPS_PER_PAIR * len(before) * len(after)):
        return []
    old_words, new_words = _words(before), _words(after)
    similarities = [[_similarity(old, new) for new in new_words] for old in old_words]
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            paired = similarities[i][j] + best[i + 1][j + 1]
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(before) and j < len(after):
        if similarities[i][j] and best[i][j] == similarities[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _words(lines: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(_WORDS.findall(line[:_COMPARED_CHARACTERS])) for line in lines]


def _similarity(old: frozenset[str], new: frozenset[str]) -> float:
    """Return the similarity from 0 to 1; 0 if it is too small."""
    share = 2 * len(old & new) / max(1, len(old) + len(new))
    return share if share >= SIMILAR else 0.0

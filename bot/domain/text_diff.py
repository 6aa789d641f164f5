"""Which parts of two texts are the same, found with bounded work: both come from strangers."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest

from typing_extensions import override

_EXACT = 1_000
"""Of so many parts those that often repeat are looked at as well; of more, that takes too long."""
ALIKE = 0.5
"""So large a part of the words of two lines must be the same for one to be a changed other."""
_STEPS_PER_PAIR = 10
_LOOKED_AT = 400
"""Letters of a line whose words say what it is like."""
_AROUND = 3
"""Lines that a unified difference shows round each change."""
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(slots=True)
class StepBudget:
    """How much looking is left; a million steps take about 0.15 s."""

    left: int

    def take(self, count: int) -> bool:
        """Whether so many steps were left; they are not any more."""
        if count > self.left:
            return False
        self.left -= count
        return True


class BoundedMatcher(difflib.SequenceMatcher[str]):
    """Python's own, which takes no more than these steps.

    Without them its time grows with the square of what it is given, and for some with the cube.
    What is left when they are used up counts as different: the result is coarser, and still true.
    """

    b2j: dict[str, list[int]]
    """Where in the second each part stands, as Python documents it."""

    def __init__(self, before: Sequence[str], after: Sequence[str], steps: StepBudget) -> None:
        super().__init__(None, before, after, autojunk=len(after) > _EXACT)
        self.before, self.after = before, after
        self._steps = steps
        costs = (1 + len(self.b2j.get(each, ())) for each in before)
        self._cost_before = list(accumulate(costs, initial=0))

    @override
    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """The longest common part of two ranges; none once the steps are used up."""
        end = len(self.before) if ahi is None else ahi
        if not self._steps.take(self._cost_before[end] - self._cost_before[alo]):
            return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def unified(matcher: BoundedMatcher, before: str, after: str) -> Iterator[str]:
    """As `diff -u` has it, from a matcher that has done the work already."""
    for number, group in enumerate(matcher.get_grouped_opcodes(_AROUND)):
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
    """Where a group lies, as `diff -u` counts; an empty one follows the line that it names."""
    length = end - begin
    if length == 1:
        return f"{begin + 1}"
    return f"{begin + 1 if length else begin},{length}"


def lines_of(text: str) -> list[str]:
    """The lines without their ends, counted as editors and compilers count them."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def side_by_side(
    before: Sequence[str], after: Sequence[str], steps: StepBudget
) -> Iterator[tuple[str | None, str | None]]:
    """Lines that were replaced and those that replace them, such that like ones stand together.

    Between those the others stand together as they come, also once the steps are used up.
    """
    ends = [(-1, -1), *_anchors(before, after, steps), (len(before), len(after))]
    for (i1, j1), (i2, j2) in pairwise(ends):
        if i1 >= 0:
            yield before[i1], after[j1]
        yield from zip_longest(before[i1 + 1 : i2], after[j1 + 1 : j2])


def _anchors(
    before: Sequence[str], after: Sequence[str], steps: StepBudget
) -> Sequence[tuple[int, int]]:
    """Pairs of like lines, in order, with as much in common as can be."""
    if not steps.take(_STEPS_PER_PAIR * len(before) * len(after)):
        return []
    olds, news = _words(before), _words(after)
    likes = [[_likeness(old, new) for new in news] for old in olds]
    best = [[0.0] * (len(news) + 1) for _ in range(len(olds) + 1)]
    for i in reversed(range(len(olds))):
        for j in reversed(range(len(news))):
            together = likes[i][j] + best[i + 1][j + 1]
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(olds) and j < len(news):
        if likes[i][j] and best[i][j] == likes[i][j] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _words(lines: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(_WORDS.findall(line[:_LOOKED_AT])) for line in lines]


def _likeness(old: frozenset[str], new: frozenset[str]) -> float:
    """From 0 to 1; 0 as well where there is too little of it."""
    share = 2 * len(old & new) / max(1, len(old) + len(new))
    return share if share >= ALIKE else 0.0

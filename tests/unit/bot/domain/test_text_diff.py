import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.text_diff import BoundedMatcher, StepBudget, lines_of, side_by_side, unified

LINES = st.lists(st.sampled_from("abcde"), max_size=30)


@settings(max_examples=50)
@given(LINES, LINES, st.integers(0, 300))
def test_what_is_called_the_same_is_the_same_however_few_the_steps(
    before: list[str], after: list[str], steps: int
) -> None:
    made: list[str] = []
    for tag, i1, i2, j1, j2 in BoundedMatcher(before, after, StepBudget(steps)).get_opcodes():
        assert tag != "equal" or before[i1:i2] == after[j1:j2]
        made += before[i1:i2] if tag == "equal" else after[j1:j2]
    assert made == after


def test_without_a_step_everything_differs() -> None:
    assert BoundedMatcher("ab", "ab", StepBudget(0)).get_opcodes() == [("replace", 0, 2, 0, 2)]


def _pairs(count: int) -> tuple[Sequence[str], Sequence[str]]:
    return [str(n // 2) for n in range(count)], [str(n * 7 // 2 % count) for n in range(count)]


def _crowded(count: int) -> tuple[Sequence[str], Sequence[str]]:
    chance = random.Random(1)  # noqa: S311
    few = [f"v{number}" for number in range(99)]
    return chance.choices(few, k=count), chance.choices(few, k=count)


def _turned(count: int) -> tuple[Sequence[str], Sequence[str]]:
    lines = [f"v{number % 110}" for number in range(count)]
    return lines, lines[::-1]


@pytest.mark.parametrize("make", [_pairs, _crowded, _turned])
def test_no_pair_of_texts_takes_more_than_its_steps(make: object) -> None:
    assert callable(make)
    before, after = make(10_000)
    steps = StepBudget(300_000)
    began = time.process_time()
    BoundedMatcher(before, after, steps).get_opcodes()
    assert steps.left >= 0
    assert time.process_time() - began < 1.5


def test_a_line_stands_beside_the_one_that_it_was_made_of() -> None:
    before = ["x = load(a, 16)", "y = load(b, 16)"]
    after = ["# blocks are wider now", "x = load(a, 32)", "", "y = load(b, 32)", "z = x + y"]
    assert list(side_by_side(before, after, StepBudget(10_000))) == [
        (None, "# blocks are wider now"),
        (before[0], "x = load(a, 32)"),
        (None, ""),
        (before[1], "y = load(b, 32)"),
        (None, "z = x + y"),
    ]
    assert next(iter(side_by_side(before, after, StepBudget(99)))) == (before[0], after[0])


@settings(max_examples=50)
@given(LINES, LINES, st.integers(0, 3000))
def test_every_line_stands_on_its_side_once_and_in_order(
    before: list[str], after: list[str], steps: int
) -> None:
    rows = list(side_by_side(before, after, StepBudget(steps)))
    assert [old for old, _ in rows if old is not None] == before
    assert [new for _, new in rows if new is not None] == after
    assert (None, None) not in rows


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    assert lines_of("a\r\nb\rc\x0cd\u2028e\n\n") == ["a", "b", "c\x0cd\u2028e", ""]
    assert lines_of("") == []


def test_a_change_is_shown_with_three_lines_on_each_side() -> None:
    before = list("abcdefghi")
    after = [*"abcd", "X", *"fghi"]
    shown = unified(BoundedMatcher(before, after, StepBudget(1_000)), "old", "new")
    assert list(shown) == [
        "--- old", "+++ new", "@@ -2,7 +2,7 @@",
        " b", " c", " d", "-e", "+X", " f", " g", " h",
    ]  # fmt: skip

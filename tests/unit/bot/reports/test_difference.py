"""Tests of how a difference is drawn: numbers, words, folds, and the bounds of hostile sources."""

import time

from bot.reports.difference import (
    CONTEXT,
    LONGEST,
    MOST,
    Difference,
    LinePair,
    Piece,
    colored,
    difference,
)
from bot.web.rendering import render


def same(count: int, text: str = "x") -> list[LinePair]:
    return [(f"{text}{number}", " ", f"{text}{number}") for number in range(count)]


def drawn(it: Difference) -> str:
    return render("parts/difference.html", {"it": it, "names": ("#1 a.py", "#2 b.py")})


def test_lines_are_numbered_on_their_own_side() -> None:
    found = difference([("a", " ", "a"), ("b", "<", ""), ("", ">", "c"), ("d", "|", "e")])
    (section,) = found.sections
    numbers = [(row.old and row.old.number, row.new and row.new.number) for row in section.rows]
    assert numbers == [(1, 1), (2, None), (None, 2), (3, 3)]
    assert (found.removed, found.added) == (2, 2)


def test_words_that_changed_are_marked_and_unlike_lines_are_not_taken_apart() -> None:
    like = ("x = load(a, 16)", "|", "x = load(a, 32)")
    unlike = ("import torch", "|", "BLOCK: tl.constexpr")
    (section,) = difference([like, unlike]).sections
    first, second = section.rows
    assert first.old is not None
    assert first.new is not None
    assert first.old.pieces == (Piece("x = load(a, "), Piece("16", changed=True), Piece(")"))
    assert first.new.pieces[1] == Piece("32", changed=True)
    assert second.old is not None
    assert second.old.pieces == (Piece("import torch"),)


def test_unchanged_runs_are_folded_but_for_the_lines_round_a_change() -> None:
    found = difference([*same(20), ("a", "|", "b"), *same(2 * CONTEXT + 1), ("", ">", "c")])
    folded, shown = found.sections
    assert (folded.folded, folded.count) == (True, 20 - CONTEXT)
    assert shown.count == len(shown.rows) == CONTEXT + 1 + 2 * CONTEXT + 1 + 1
    text = drawn(found)
    assert "<details" in text
    assert "17 unchanged lines" in text
    assert 'class="same"' in text


def test_colors_and_changes_cut_a_line_at_the_ends_of_both() -> None:
    found = difference([("x = load(16)", "|", "x = load(32)"), ("", ">", "y")])
    parts = ((("", "x = "), ("nf", "load"), ("", "("), ("mi", "16"), ("", ")")),)
    (section,) = colored(found, (parts, ())).sections
    line = section.rows[0].old
    assert line is not None
    assert line.pieces == (
        Piece("x = "), Piece("load", color="nf"), Piece("("),
        Piece("16", changed=True), Piece(")"),
    )  # fmt: skip
    assert section.rows[0].new == found.sections[0].rows[0].new  # without colors, as it was
    text = drawn(colored(found, (parts, ())))
    assert '<span class="nf">load</span>(<del>16</del>)' in text
    assert "<ins>32</ins>" in text


def test_colors_of_another_text_are_left_out_and_a_cut_line_is_colored_up_to_there() -> None:
    found = difference([("abc", "<", ""), ("y" * 2 * LONGEST, "<", "")])
    other = ((("k", "abd"),), (("k", "y" * 2 * LONGEST),))
    (section,) = colored(found, (other, ())).sections
    first, second = (row.old for row in section.rows)
    assert first is not None
    assert second is not None
    assert first.pieces == (Piece("abc"),)
    assert second.pieces == (Piece("y" * LONGEST, color="k"),)


def test_nothing_that_anybody_wrote_acts_or_hides() -> None:
    hostile = "</td><script>alert(1)</script>\x1b[31m\u202e"
    text = drawn(difference([(hostile, "|", hostile + "1"), (hostile, " ", hostile)]))
    assert "<script" not in text
    assert "\x1b" not in text
    assert "[31m" not in text
    assert "\u202e" not in text


def test_a_long_line_is_cut_and_says_so() -> None:
    text = drawn(difference([("x" * (LONGEST + 5), "<", "")]))
    assert "x" * LONGEST in text
    assert "x" * (LONGEST + 1) not in text
    assert "5 characters more" in text


def test_hostile_sources_are_drawn_within_a_bound_and_what_is_left_out_is_said() -> None:
    words = "a b " * 250
    changes: list[LinePair] = [(f"{words}{n}", "|", f"{n} {words}") for n in range(2_000)]
    began = time.process_time()
    found = difference(changes)
    text = drawn(found)
    assert time.process_time() - began < 1.5
    assert len(text) < 4 * MOST
    rows = sum(len(each.rows) for each in found.sections)
    assert found.left_out == 2_000 - rows > 1_000


def test_changes_have_room_before_what_is_folded() -> None:
    found = difference([*same(9_000, "y" * 100), ("a", "|", "b")])
    folded, shown = found.sections
    assert folded.rows == ()
    assert len(shown.rows) == CONTEXT + 1
    assert "8,997 unchanged lines" in drawn(found)
    assert "<details" not in drawn(found)

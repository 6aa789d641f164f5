"""The heading of a submission is its comments up to the first line of code."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from runners.contract.launch import header_lines

MARKERS = ("#!PODIUM", "//!PODIUM")


def test_header_lines_are_given_with_their_lines_and_words() -> None:
    source = (
        "// a\n\n \t#!PODIUM  leaderboard   x \n#!PODIUMS\n//!PODIUM\n#include <mma.h>\n"
        "int y; // no heading\n#!PODIUM nor this\n"
    )

    assert list(header_lines(source, MARKERS)) == [
        (3, ["#!PODIUM", "leaderboard", "x"]), (5, ["//!PODIUM"]),
    ]  # fmt: skip


def test_a_source_without_comments_has_no_heading() -> None:
    assert list(header_lines("import torch\n#!PODIUM late\n", MARKERS)) == []


_PIECES = ("#", "//", "#!PODIUM", "//!PODIUM", "x", " ", "\t", "\n", "\r", "\r\n", "\f", "\v",
           "\x1c", "\x1f", "\x85", "\xa0", "\u2028", "\u2029", "\ufeff")  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=20).map("".join))
def test_lines_are_those_of_python_whatever_ends_them(source: str) -> None:
    assert list(header_lines(source, MARKERS)) == list(_line_by_line(source))


def _line_by_line(source: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(source.splitlines(), start=1):
        words = line.split()
        if words and not words[0].startswith(("#", "//")):
            return
        if words and words[0] in MARKERS:
            yield number, words

"""The heading of a submission is its comments up to the first line of code."""

from runners.contract.launch import comment_lines


def test_comments_are_given_with_their_lines_and_words() -> None:
    source = (
        "// a\n\n#!PODIUM  leaderboard   x\n#include <mma.h>\nint y; // no heading\n// nor this\n"
    )

    assert list(comment_lines(source)) == [
        (1, ["//", "a"]), (3, ["#!PODIUM", "leaderboard", "x"]), (4, ["#include", "<mma.h>"]),
    ]  # fmt: skip


def test_a_source_without_comments_has_no_heading() -> None:
    assert list(comment_lines("import torch\n# late\n")) == []

"""The header of a submission: the comments above its first line of code."""

from collections.abc import Iterator

_COMMENTS = ("#", "//")


def comment_lines(
    source: str, comments: tuple[str, ...] = _COMMENTS
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number (from 1) and the words of each non-empty line before the first line of code.

    `comments` are the prefixes of a comment.
    """
    for number, line in enumerate(source.splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith(comments):
            return
        if text:
            yield number, text.split()

"""The comments above a submission's first line of code, in which it may say things of itself."""

from collections.abc import Iterator

_COMMENTS = ("#", "//")


def comment_lines(
    source: str, comments: tuple[str, ...] = _COMMENTS
) -> Iterator[tuple[int, list[str]]]:
    """The number, from 1, and the words of each line that has any, up to the first one of code.

    `comments` are the beginnings of a comment.
    """
    for number, line in enumerate(source.splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith(comments):
            return
        if text:
            yield number, text.split()

"""Tests of messages that name a line of a source, and of code in messages."""

import pytest

from bot.web.markup import line_of, with_code, with_line


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("ValueError: no (line 5)", 5),
        ("SyntaxError: invalid syntax (submission.py, line 8)", 8),
        ("submission.cu:12: error: expected a ;", 12),
        ("(line 3) is quoted; RuntimeError (line 4)", 4),
        ("task.cu:12: error: not the submission's", None),
        ("no line", None),
        ("(line 12345678)", None),
    ],
)
def test_the_line_that_a_message_names_last_is_a_link(message: str, line: int | None) -> None:
    assert line_of(message) == line
    shown = with_line(f"<b> {message}", "/submissions/1")
    assert shown.startswith("&lt;b&gt;")
    assert shown.count("<a ") == shown.count(f'href="/submissions/1#line-{line}"')
    assert shown.count("<a ") == (line is not None)


def test_text_between_backticks_is_code() -> None:
    shown = with_code("use `podium <x>`; \u202ea `lone one")
    assert shown == "use <code>podium &lt;x&gt;</code>; a `lone one"

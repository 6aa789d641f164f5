"""Descriptions of tasks as people read them."""

import time

import pytest

from bot.web.markup import line_of, marked, with_line


def test_headings_code_and_strong_words_are_drawn() -> None:
    assert marked("# sort\n\nSort `size` **single** numbers.\nTwo lines.\n") == (
        "<h2>sort</h2>\n<p>Sort <code>size</code> <strong>single</strong> numbers.\nTwo lines.</p>"
    )


def test_a_fenced_block_stays_as_it_is_also_without_an_end() -> None:
    block = "# `a` x K\n  b  c"
    drawn = f'<p>Given:</p>\n<pre class="log" tabindex="0">{block}</pre>'
    assert marked(f"Given:\n```yml\n{block}\n```\n") == drawn
    assert marked(f"Given:\n```\n{block}") == drawn


def test_paragraphs_flow_and_are_apart() -> None:
    assert marked("One\ntwo.\n\n\nThree.\n") == "<p>One\ntwo.</p>\n<p>Three.</p>"


def test_lists_and_tables_stay_text() -> None:
    text = "- data: a\n  - b\n| M | N |\n|---|---|\n2 * 3 * 4 ** 5"
    assert marked(text) == f'<p class="pre">{text}</p>'


@pytest.mark.parametrize("around", ["{}", "# {}", "`{}`", "**{}**", "```\n{}\n```"])
def test_nothing_in_it_is_markup_of_the_page(around: str) -> None:
    drawn = marked(around.format('<script>x</script> & "\u202e'))
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "&amp;" in drawn
    assert "\u202e" not in drawn


@pytest.mark.parametrize(
    "text", ["`" * 200_000, "**a" * 70_000, "# " + " #" * 99_999 + "x", "# " + " " * 99_999]
)
def test_a_long_text_of_marks_takes_no_time(text: str) -> None:
    begun = time.perf_counter()
    marked(text)
    assert time.perf_counter() - begun < 2


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

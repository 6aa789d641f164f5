"""Tests of statements of tasks as HTML: Markdown and formulas are drawn, and no script runs."""

import re
import time

import pytest

from bot.services.parser_process import BusyError, ParserProcess
from bot.web import markup
from bot.web.markup import MOST_STATEMENT, render_statement, statement

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)> & "\u202e'


def drawn(text: str, *drawings: str) -> str:
    return render_statement(text, "/boards/x/drawings", drawings)


def test_headings_code_lists_and_tables_are_drawn() -> None:
    shown = drawn(
        "# sort\n\nSort `size` **single** numbers.\n\n- one\n- two\n\n| M |\n|---|\n| 1 |\n"
    )
    assert shown.startswith("<h3>sort</h3>\n<p>Sort <code>size</code> <strong>single</strong>")
    assert "<li>one</li>" in shown
    assert '<table tabindex="0">' in shown


def test_headings_skip_no_level_and_begin_below_those_of_the_page() -> None:
    levels = re.findall(r"<(h\d)>", drawn("## a\n\n#### b\n\n## c\n\n##### d\n\n###### e\n"))
    assert levels == ["h3", "h4", "h3", "h4", "h5"]


def test_fenced_code_is_coloured_by_classes_and_without_a_known_language_stays_plain() -> None:
    assert '<span class="k">def</span>' in drawn("```python\ndef f(): ...\n```")
    assert '<pre class="log" tabindex="0">&lt;b&gt;\n</pre>' in drawn("```nonsense\n<b>\n```")


def test_formulas_are_mathml_and_prices_are_not() -> None:
    shown = drawn(r"It costs $5 and $6. Let $y = \frac{x}{2}$." "\n\n" r"$$\sum_i x_i$$")
    assert "It costs $5 and $6." in shown
    assert shown.count("<math ") == 2
    assert "<mfrac>" in shown
    assert "<mo>=</mo>" in shown
    assert '<math display="block">' in shown


@pytest.mark.parametrize(
    "formula",
    [
        r"\href{javascript:alert(1)}{x}", r"\style{color:red}{x}", r"\color{red}{x}",
        r"\class{a}{x}",
        r"\text{<script>alert(1)</script>}", r"\text{&lt;script&gt;}", r"\require{x}", r"\frac{",
        "{" * 1_500, r"\frac" * 300, "<script>", r"\cssId{main}{x}", r"\begin{matrix}",
    ],
)  # fmt: skip
def test_a_formula_holds_no_link_style_or_script(formula: str) -> None:
    shown = drawn(f"${formula}$")
    assert "<script" not in shown
    assert not re.search(r"<[^>]*\s(href|style|class|id|on\w+)=", shown)


def test_images_are_only_the_drawings_of_the_task() -> None:
    image = '<img class="drawing" src="/boards/x/drawings/a.svg" alt="&#34;A&#34;">'
    assert image in drawn('!["A"](a.svg)', "a.svg").replace("&quot;", "&#34;")
    for other in (
        "b.svg",
        "http://e.org/a.svg",
        "//e.org/a.svg",
        "data:image/png;base64,AA",
        "x.py",
    ):
        shown = drawn(f"![words]({other})", "a.svg", "x.py"[:0])
        assert "<img" not in shown
        assert "words" in shown


@pytest.mark.parametrize(
    "around",
    ["{}", "# {}", "`{}`", "**{}**", "```\n{}\n```", "- {}", "| {} |\n|-|\n| {} |", "[{}](x)"],
)
async def test_nothing_in_a_statement_becomes_markup_of_the_page(around: str) -> None:
    shown = await statement(around.replace("{}", HOSTILE), "/x", ())
    assert "<script" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;" in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "vbscript:x", "data:text/html,x", "file:///x"]
)
def test_a_link_runs_nothing(link: str) -> None:
    assert "<a" not in drawn(f"[x]({link})")


async def test_a_text_that_takes_too_long_is_shown_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(markup, "HIGHLIGHTER", ParserProcess(0.6, 60))
    begun = time.monotonic()
    assert await statement("![" * 40_000, "/x", ()) == f'<p class="pre">{"![" * 40_000}</p>'
    assert time.monotonic() - begun < 20
    long = "*a* " * (MOST_STATEMENT // 4) + "<"
    assert await statement(long, "/x", ()) == f'<p class="pre">{long[:-1]}&lt;</p>'


async def test_while_too_many_are_rendered_a_statement_is_shown_as_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def busy(*_: object) -> str:
        raise BusyError("try again")

    text = "only **once** here"
    with monkeypatch.context() as patched:
        patched.setattr(ParserProcess, "call", busy)
        assert "<strong>" not in await statement(text, "/x", ())
    assert "<strong>" in await statement(text, "/x", ())

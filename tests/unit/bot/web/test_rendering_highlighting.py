import pytest

from bot.services.parser_process import BusyError, ParserProcess
from bot.web import markup
from bot.web.markup import MOST, MOST_NUMBERED, colored_lines, highlighted, plain

HOSTILE = "</pre><script>alert(1)</script>\u202e\x1b[31m"


@pytest.mark.parametrize("name", ["a.py", "a.cu", "a.unknown", "plain"])
@pytest.mark.parametrize("size", [1, MOST // 10])
async def test_no_source_breaks_out_of_its_lines(name: str, size: int) -> None:
    shown = await highlighted((HOSTILE + "\n") * size, name)
    assert "<script" not in shown
    assert shown.count("</pre>") == 1
    assert "\u202e" not in shown
    assert "\x1b" not in shown


async def test_python_is_coloured_by_classes_and_its_lines_are_numbered() -> None:
    shown = await highlighted("import torch\nx = 'a'\n", "kernel.py")
    assert '<span class="kn">import</span>' in shown
    assert '<span id="line-2">' in shown
    assert "style=" not in shown


@pytest.mark.parametrize("lines", [1, MOST_NUMBERED, MOST_NUMBERED + 1, 300_000])
def test_only_so_many_lines_are_elements_of_the_page_and_none_is_missing(lines: int) -> None:
    source = "\n".join(["#<"] * lines)
    shown = plain(source)
    assert shown.count("<span") == min(lines, MOST_NUMBERED)
    assert shown.striptags().count("#<") == lines
    assert shown.count("\n") - source.count("\n") in {0, 1}


@pytest.mark.parametrize("gap", ["\n" * 49_000, 'R"(' * 16_000])
async def test_what_a_lexer_needs_minutes_for_is_shown_plain(
    gap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markup, "HIGHLIGHTER", ParserProcess(0.6, 60))
    shown = await highlighted("int a;" + gap + "int b;", "kernel.cu")
    assert "int b;" in shown
    assert "<span class=" not in shown


async def test_where_too_many_look_at_sources_one_is_shown_plain_for_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def busy(*_: object) -> str:
        raise BusyError("too many files are being read at the same time; try again in a moment")

    source = "int only_once;"
    with monkeypatch.context() as patched:
        patched.setattr(ParserProcess, "call", busy)
        assert "<span class=" not in await highlighted(source, "kernel.cu")
    assert "<span class=" in await highlighted(source, "kernel.cu")


async def test_each_line_of_a_text_over_several_lines_is_colored() -> None:
    lines = await colored_lines('import torch\nx = """a\nb"""\n', "kernel.py")
    assert lines[0][0] == ("kn", "import")
    assert lines[1][-1] == (*lines[2][0][:1], '"""a')
    assert ["".join(part for _, part in line) for line in lines] == [
        "import torch", 'x = """a', 'b"""', "",
    ]  # fmt: skip
    assert await colored_lines("x", "kernel.unknown") == ()
    assert await colored_lines("x" * (MOST + 1), "kernel.py") == ()

import time

import pytest

from bot.frontends.web.highlighting import MOST, highlighted

HOSTILE = "</pre><script>alert(1)</script>\u202e\x1b[31m"


@pytest.mark.parametrize("name", ["a.py", "a.cu", "a.unknown", "plain"])
@pytest.mark.parametrize("size", [1, MOST // 10])
def test_no_source_breaks_out_of_its_lines(name: str, size: int) -> None:
    shown = highlighted((HOSTILE + "\n") * size, name)
    assert "<script" not in shown
    assert shown.count("</pre>") == 1
    assert "\u202e" not in shown
    assert "\x1b" not in shown


def test_python_is_coloured_by_classes_and_its_lines_are_numbered() -> None:
    shown = highlighted("import torch\nx = 'a'\n", "kernel.py")
    assert '<span class="kn">import</span>' in shown
    assert '<span id="line-2">' in shown
    assert "style=" not in shown


@pytest.mark.parametrize("name", ["a.py", "a.cu"])
@pytest.mark.parametrize("line", ['"', "/*", "<" * 90, "\\", "f'{{"])
def test_no_source_takes_long_to_be_coloured(name: str, line: str) -> None:
    began = time.process_time()
    highlighted((line * 40 + "\n") * (MOST // (len(line) * 40 + 1)), name)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("gap", ["\n", " \n", "\n\t", "\u2028 "])
def test_no_space_between_lines_costs_minutes(gap: str) -> None:
    began = time.process_time()
    shown = highlighted("int a;" + gap * (8_000 // len(gap)) + "int b;", "kernel.cu")
    assert time.process_time() - began < 1
    assert "int b;" in shown, "it is shown plain"
    assert "<span class=" in highlighted("int a;" + "\n" * 100 + "int b;", "kernel.cu")


def test_no_number_of_raw_strings_costs_minutes() -> None:
    line = 'R"(' * 50 + "\n"
    began = time.process_time()
    assert "R&#34;(R&#34;(" in highlighted(line * 100, "kernel.cu")
    assert time.process_time() - began < 1
    assert "<span class=" in highlighted('auto a = R"(text)";\n' * 20, "kernel.cu")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reports.blocks import Column, Table
from bot.reports.escaping import clean, one_line, table_lines

COLUMNS = (Column("who"), Column("time", numeric=True))


def test_terminal_escapes_controls_and_direction_marks_are_gone() -> None:
    assert clean("\x1b[31mred\x1b[0m\x07 \u202egnp.exe\r\nnext\tone") == "red gnp.exe\nnext\tone"


def test_a_terminal_title_without_its_end_takes_no_more_than_its_line() -> None:
    assert clean("a\x1b]0;evil\nb") == "a\nb"


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\nthe rest", "\nthe rest"),
        ("\x1bPnever ended\rthe rest", "\nthe rest"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mC1", "31mC1"),
        ("over\rwrite", "over\nwrite"),
        ("a\u202egnirts", "agnirts"),
        ("bell\x07null\x00", "bellnull"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_terminal_controls_are_taken_out(hostile: str, harmless: str) -> None:
    assert clean(hostile) == harmless


@given(st.text())
def test_no_text_leaves_a_control_behind(text: str) -> None:
    kept = {character for character in clean(text) if ord(character) < 32 or ord(character) == 127}
    assert kept <= {"\n", "\t"}


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


def test_one_line_has_single_spaces() -> None:
    assert one_line(" a\n\tb\x00 ") == "a b"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    table = Table("standings", COLUMNS, (("ada", "9 µs"), ("bob", "10 µs")))
    assert list(table_lines(table)) == ["who   time", "ada   9 µs", "bob  10 µs"]


def test_writing_that_takes_the_room_of_two_letters_is_measured_so() -> None:
    table = Table("standings", COLUMNS, (("\u5f20\u4f1f", "9 µs"), ("bob", "10 µs")))
    assert list(table_lines(table)) == ["who    time", "\u5f20\u4f1f   9 µs", "bob   10 µs"]

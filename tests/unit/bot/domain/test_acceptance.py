from datetime import timedelta

import pytest

from bot.domain.acceptance import (
    MAX_SOURCE_BYTES,
    Header,
    board_name,
    check_language,
    check_open,
    choose_gpus,
    file_name,
    read_file,
    source_text,
)
from bot.domain.board import SeasonRules
from bot.domain.errors import UserError
from runners.contract.task import Mode
from tests.doubles.factories import NOON, make_board, make_task


def test_the_source_keeps_its_text_without_a_byte_order_mark() -> None:
    assert source_text("\ufeff# é\n".encode()) == "# é\n"


def test_a_file_is_read_with_its_heading() -> None:
    file = read_file("C:\\a\\k.py", b"#!PODIUM leaderboard sort\nx = 1\n")
    assert (file.name, file.header) == ("k.py", Header(leaderboard="sort"))
    assert file.source == "#!PODIUM leaderboard sort\nx = 1\n"
    with pytest.raises(UserError, match="line 1 of the header"):
        read_file("k.py", b"#!PODIUM\n")


def test_the_largest_source_is_taken() -> None:
    assert len(source_text(b"#" * MAX_SOURCE_BYTES)) == MAX_SOURCE_BYTES


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [
        (b"", "empty", "empty"),
        (b" \n\t\n", "empty", "empty"),
        (b"#" * (MAX_SOURCE_BYTES + 1), "too-large", "at most 1,000,000"),
        (b"a\0b", "not-text", "NUL"),
        (b"# ok\n\xff", "not-utf8", "line 2"),
        ("x = 1\n".encode("utf-16"), "not-utf8", "Set-Content -Encoding utf8"),
        ("x = 1\n".encode("utf-16-be"), "not-utf8", "iconv -f UTF-16 -t UTF-8 FILE"),
        ("# é 二\nx = 1\n".encode("utf-16-le"), "not-utf8", "is UTF-16"),
        ("x = 1\n".encode("utf-32"), "not-utf8", "is UTF-16"),
        (b"PK\x03\x04\0\0", "not-text", "NUL"),
    ],
)
def test_what_is_no_source_is_refused(content: bytes, code: str, part: str) -> None:
    with pytest.raises(UserError, match=part) as refusal:
        source_text(content)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("lang", "name"),
    [
        ("py", "kernel.py"),
        ("py", "KERNEL.PY"),
        ("cu", "kernel.cu"),
        ("cu", "kernel.cuh"),
        ("cu", "kernel.cpp"),
    ],
)
def test_a_file_of_the_board_s_language_is_taken(lang: str, name: str) -> None:
    check_language(name, "sort", make_task(lang=lang))


@pytest.mark.parametrize(
    ("lang", "name", "code", "part"),
    [
        ("py", "kernel.cu", "other-language", "load_inline, in a .py file"),
        ("cu", "kernel.py", "other-language", "write it as a .cu file"),
        ("py", "message.txt", "bad-suffix", "such as kernel.py"),
        ("cu", "kernel.ptx", "bad-suffix", "such as kernel.cu"),
        ("py", "kernel", "bad-suffix", "has no suffix"),
    ],
)
def test_a_file_of_another_language_is_refused(lang: str, name: str, code: str, part: str) -> None:
    with pytest.raises(UserError, match=part) as refusal:
        check_language(name, "sort", make_task(lang=lang))
    assert refusal.value.code == code


def test_a_file_keeps_only_the_last_part_of_its_name() -> None:
    assert file_name("../../etc/kernel.py") == "kernel.py"
    assert file_name("C:\\work\\kernel.py") == "kernel.py"


@pytest.mark.parametrize("name", ["", "dir/", "a" * 101, "a\x1b[2J.py", "a\u202egnp.py"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="file"):
        file_name(name)


def test_the_board_comes_from_the_argument_or_from_the_heading() -> None:
    assert board_name("sort", Header()) == "sort"
    assert board_name(None, Header(leaderboard="sort")) == "sort"
    assert board_name("sort", Header(leaderboard="sort")) == "sort"


def test_argument_and_heading_must_agree_on_the_board() -> None:
    with pytest.raises(UserError, match="header says 'softmax'") as refusal:
        board_name("sort", Header(leaderboard="softmax"))
    assert refusal.value.code == "heading-disagrees"


def test_a_board_must_be_named_somewhere() -> None:
    with pytest.raises(UserError, match="#!PODIUM leaderboard"):
        board_name(None, Header())


def test_a_board_is_open_up_to_its_deadline() -> None:
    for board in (make_board(deadline=NOON), make_board(deadline=None)):
        check_open(board, Mode.RANKED, NOON)
        assert board.is_open(NOON)


def test_a_closed_board_says_when_it_closed_and_in_which_zone() -> None:
    with pytest.raises(UserError, match="closed at 2026-11-01 12:00 UTC") as refusal:
        check_open(make_board(deadline=NOON), Mode.TEST, NOON + timedelta(microseconds=1))
    assert refusal.value.code == "closed"


def test_a_board_with_late_runs_refuses_only_ranked_ones_after_its_deadline() -> None:
    board = make_board(deadline=NOON, rules=SeasonRules(late_runs=True))
    late = NOON + timedelta(seconds=1)
    for mode in set(Mode) - {Mode.RANKED}:
        check_open(board, mode, late)
    with pytest.raises(UserError, match="no more ranked submissions; submit in another mode"):
        check_open(board, Mode.RANKED, late)
    check_open(board, Mode.RANKED, NOON)


def test_gpus_are_spelled_and_ordered_as_the_board_has_them() -> None:
    assert choose_gpus(["l4", "h100", "L4"], [], ["H100", "L4", "T4"]) == ("H100", "L4")
    assert choose_gpus([], ["t4"], ["H100", "T4"]) == ("T4",)
    assert choose_gpus(["L4", "T4"], ["T4", "L4"], ["L4", "T4"]) == ("L4", "T4")


def test_the_only_gpu_of_a_board_needs_no_choice() -> None:
    assert choose_gpus([], [], ["H100"]) == ("H100",)


def test_several_gpus_ask_for_a_choice() -> None:
    with pytest.raises(UserError, match="H100, L4") as refusal:
        choose_gpus([], [], ["H100", "L4"])
    assert refusal.value.code == "choose-gpu"


def test_an_unknown_gpu_is_refused_with_the_board_s_list() -> None:
    with pytest.raises(UserError, match="runs on H100, L4, not on 'H200'") as refusal:
        choose_gpus(["H200"], [], ["H100", "L4"])
    assert refusal.value.code == "unknown-gpu"


def test_argument_and_heading_must_agree_on_the_gpus() -> None:
    with pytest.raises(UserError, match="header says L4") as refusal:
        choose_gpus(["H100"], ["L4"], ["H100", "L4"])
    assert refusal.value.code == "heading-disagrees"


@pytest.mark.parametrize("name", ["A100", "a100-40gb", "A100:8"])
def test_a_card_is_chosen_by_each_of_its_names(name: str) -> None:
    assert choose_gpus([name], [], ["L4", "A100"]) == ("A100",)
    assert choose_gpus([], [name], ["L4", "A100"]) == ("A100",)
    assert choose_gpus([name], ["A100-40GB"], ["L4", "A100"]) == ("A100",)

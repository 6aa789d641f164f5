import re
import sys
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.acceptance import Header, parse_header, with_board
from bot.domain.errors import UserError


@pytest.mark.parametrize("marker", ["#!POPCORN", "//!POPCORN", "#!PODIUM", "//!PODIUM"])
def test_every_marker_names_board_and_gpus(marker: str) -> None:
    source = f"{marker} leaderboard softmax\n{marker} gpus H100 L4\nimport torch\n"
    assert parse_header(source) == Header(leaderboard="softmax", gpus=("H100", "L4"))


def test_the_singular_and_commas_are_taken_as_well() -> None:
    assert parse_header("#!POPCORN gpu H100,L4").gpus == ("H100", "L4")


def test_a_task_s_own_solutions_say_what_they_expect_and_need() -> None:
    heading = parse_header("#!PODIUM expect wrong_answer\n#!PODIUM needs triton cuda\n")
    assert heading == Header(expect="wrong_answer", needs=("triton", "cuda"))


def test_comments_and_blank_lines_do_not_end_the_heading() -> None:
    assert parse_header("# a\n\n#!PODIUM leaderboard sort\n").leaderboard == "sort"


def test_a_directive_below_the_first_line_of_code_is_no_heading() -> None:
    assert parse_header("import torch\n#!PODIUM leaderboard sort\n") == Header()


def test_a_kernel_of_device_code_may_say_how_it_is_launched() -> None:
    source = "//!PODIUM leaderboard sum\n//!PODIUM block 32, 8\n//!PODIUM grid min(size, 9), 2\n"
    assert parse_header(source + "#include <mma.h>\n").leaderboard == "sum"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("# x\n#!PODIUM board sort", "line 2 of the header: unknown key 'board'"),
        ("#!PODIUM", "line 1 of the header: #!PODIUM needs a key and a value"),
        ("#!PODIUM leaderboard", "'leaderboard' needs a value"),
        ("#!PODIUM gpus ,", "'gpus' needs a value"),
        ("#!PODIUM leaderboard a b", "takes one value, not 2"),
        ("#!PODIUM gpus " + "A " * 101, "'gpus' takes at most 100 values, not 101"),
        ("#!PODIUM expect applause", "unknown verdict 'applause'"),
        ("#!POPCORN expect passed", "unknown key 'expect'"),
        ("//!PODIUM block 1, 2, 3, 4", "line 1 of the header: block: give one to three sizes"),
        ("//!PODIUM grid size +", "line 1 of the header: grid: 'size +' is not a formula"),
        ("//!PODIUM shared 1, 2", "line 1 of the header: shared: give one number of bytes"),
        ("//!PODIUM block", "'block' needs a value, as in //!PODIUM block 32, 8"),
        (
            "//!PODIUM block 1\n//!PODIUM block 2",
            "line 2 of the header: 'block' was set in line 1",
        ),
        ("#!PODIUM block 32", "unknown key 'block'; the keys are: leaderboard, gpus, gpu, expect"),
        ("#!PODIUM gpu A\n#!POPCORN gpus B", "line 2 of the header: 'gpus' was set in line 1"),
    ],
)
def test_a_bad_heading_is_refused_with_its_line(source: str, part: str) -> None:
    with pytest.raises(UserError, match="header") as refusal:
        parse_header(source)
    assert refusal.value.code == "bad-heading"
    assert part in refusal.value.message


@pytest.mark.parametrize(
    "source",
    ["# \n" * 300_000, "#!P\n" * 250_000, "\n" * 1_000_000, "//!PODIUM block " + "(" * 900_000,
     "//!PODIUM grid " + "1," * 400_000, "# \n" * 300_000 + "//!PODIUM shared " + "1" * 90_000],
    ids=["comments", "words", "empty", "block", "grid", "shared"],
)  # fmt: skip
def test_a_megabyte_of_heading_takes_no_step_for_each_line_or_letter(source: str) -> None:
    """A list of the lines took 2 s, and the letters after `block` 16 s."""
    calls = Counter[str]()
    earlier = sys.getprofile()
    sys.setprofile(lambda _frame, event, _argument: calls.update((event,)))
    try:
        with suppress(UserError):
            parse_header(source)
    finally:
        sys.setprofile(earlier)
    assert 0 < calls.total() < 10_000


@given(st.text())
def test_any_text_gives_a_heading_or_a_refusal(source: str) -> None:
    with suppress(UserError):
        assert isinstance(parse_header(source), Header)


_WORDS = st.lists(
    st.sampled_from(
        ("#!PODIUM", "//!POPCORN", "#", "leaderboard", "GPUS", "gpu", "expect", "crashed", "block")
    ),
    max_size=4,
)


@given(lines=st.lists(_WORDS, max_size=6), end=st.sampled_from(("\n", "\r\n", "\n\n")))
def test_whatever_a_heading_says_a_board_s_own_takes_its_place(
    lines: list[list[str]], end: str
) -> None:
    source = end.join([" ".join(words) for words in lines] + ["x = 1", "#!PODIUM gpus L4"])
    served = with_board(source, "sort", "#")
    assert served.startswith("#!PODIUM leaderboard sort\n")
    assert served.endswith(f"x = 1{end}#!PODIUM gpus L4")
    assert with_board(served, "sort", "#") == served
    try:
        heading = parse_header(served)
    except UserError as error:  # for something else that it says
        about = error.message.replace("unknown verdict 'leaderboard'", "")
        assert not re.search("'(leaderboard|gpus?)'", about)
    else:
        assert (heading.leaderboard, heading.gpus) == ("sort", ())

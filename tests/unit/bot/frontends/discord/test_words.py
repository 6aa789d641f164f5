from datetime import timedelta

import pytest

from bot.frontends.discord.words import fenced, line, moment, plain, timed, unfenced
from tests.doubles.factories import NOON


@pytest.mark.parametrize(
    "text", ["@everyone", "<@17>", "<@&5>", "**bold**", "`code`", "||spoiler||"]
)
def test_nothing_of_a_text_is_markup_or_mention(text: str) -> None:
    assert plain(text) != text
    assert plain(text).replace("\\", "").replace("\u200b", "") == text


def test_a_time_is_shown_in_the_readers_zone_and_never_before_it_is_true() -> None:
    number = int(NOON.timestamp())
    assert moment(NOON) == f"<t:{number}:F> (<t:{number}:R>)"
    late = f"<t:{number + 1}:F> (<t:{number + 1}:R>)"
    assert timed("*x* in 5 min.", {"in 5 min": NOON + timedelta(milliseconds=1)}) == (
        f"\\*x\\* {late}."
    )
    assert timed("1 in 5 min; in 5 min", {"in 5 min": NOON}) == f"1 in 5 min; {moment(NOON)}"
    assert timed("<t:1:R> @here", {"later": NOON}) == plain("<t:1:R> @here")


def test_a_block_cannot_be_ended_from_inside() -> None:
    shown = fenced("a\n```\n@everyone")
    assert shown.count("```") == 2
    assert shown.startswith("```\na\n")
    assert unfenced("``````").count("```") == 0


def test_a_line_is_one_line_and_no_longer_than_wanted() -> None:
    assert line("a\nb\x00  c") == "a b c"
    assert line("x" * 50, 10) == "x" * 9 + "…"

import pytest

from bot.frontends.discord.words import fenced, line, plain, unfenced


@pytest.mark.parametrize(
    "text", ["@everyone", "<@17>", "<@&5>", "**bold**", "`code`", "||spoiler||"]
)
def test_nothing_of_a_text_is_markup_or_mention(text: str) -> None:
    assert plain(text) != text
    assert plain(text).replace("\\", "").replace("\u200b", "") == text


def test_a_block_cannot_be_ended_from_inside() -> None:
    shown = fenced("a\n```\n@everyone")
    assert shown.count("```") == 2
    assert shown.startswith("```\na\n")
    assert unfenced("``````").count("```") == 0


def test_a_line_is_one_line_and_no_longer_than_wanted() -> None:
    assert line("a\nb\x00  c") == "a b c"
    assert line("x" * 50, 10) == "x" * 9 + "…"

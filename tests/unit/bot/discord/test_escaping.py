import time
from datetime import timedelta

import pytest

from bot.discord.escaping import (
    discord_time,
    fenced,
    line,
    markdown,
    plain,
    unfenced,
    with_discord_times,
    with_times,
)
from tests.doubles.factories import NOON


@pytest.mark.parametrize(
    "text", ["@everyone", "<@17>", "<@&5>", "**bold**", "`code`", "||spoiler||"]
)
def test_nothing_of_a_text_is_markup_or_mention(text: str) -> None:
    assert plain(text) != text
    assert plain(text).replace("\\", "").replace("\u200b", "") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("steam://x/```", "steam://x/\\`\\`\\`"),
        ("<a:/||s||**b**>", "\\<a:/\\|\\|s\\|\\|\\*\\*b\\*\\*>"),
        ("http://x/```", "http://x/\\`\\`\\`"),
        ("[here](https://e.org/a_b)", "[here]\\(https://e.org/a_b)"),
        ("[here](javascript:x)", "[here]\\(javascript:x)"),
        ("see https://e.org/a_b?c=1#d, *now*", "see https://e.org/a_b?c=1#d, \\*now\\*"),
        ("https://e.org/@everyone", "https://e.org/@\u200beveryone"),
        ("a\u202eb\u2066c\u061cd\x1b[31me", "abcde"),
    ],
)
def test_links_are_no_way_around(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["[a](" * 16_000, "[" * 64_000, "\x1b]" * 32_000, "\n " * 32_000])
def test_text_of_a_submission_does_not_keep_the_bot_busy(text: str) -> None:
    """64 KiB is what a candidate may say; discord.py's own function takes minutes for the first."""
    began = time.process_time()
    plain(text)
    assert time.process_time() - began < 2.0


def test_a_time_is_shown_in_the_readers_zone_and_never_before_it_is_true() -> None:
    number = int(NOON.timestamp())
    assert discord_time(NOON) == f"<t:{number}:F> (<t:{number}:R>)"
    late = f"<t:{number + 1}:F> (<t:{number + 1}:R>)"
    assert with_discord_times("*x* in 5 min.", {"in 5 min": NOON + timedelta(milliseconds=1)}) == (
        f"\\*x\\* {late}."
    )
    assert (
        with_discord_times("1 in 5 min; in 5 min", {"in 5 min": NOON})
        == f"1 in 5 min; {discord_time(NOON)}"
    )
    assert with_discord_times("<t:1:R> @here", {"later": NOON}) == plain("<t:1:R> @here")


def test_a_block_cannot_be_ended_from_inside() -> None:
    shown = fenced("a\n```\n@everyone")
    assert shown.count("```") == 2
    assert shown.startswith("```\na\n")
    assert unfenced("``````").count("```") == 0


def test_a_line_is_one_line_and_no_longer_than_wanted() -> None:
    assert line("a\nb\x00  c") == "a b c"
    assert line("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Sum\n## Input\n#### Note ##", "## Sum\n### Input\n### Note"),
        ("**a** `b`\n- c", "**a** `b`\n- c"),
        ("#5 is no heading", "#5 is no heading"),
        ("<@17> `<@17>`", "\\<@17> `<@17>`"),
        ("[a](https://evil.example)", "[a]\\(https://evil.example)"),
        ("```py\n# comment\n```", "```py\n# comment\n```"),
        ("```py\nx", "```py\nx\n```"),
    ],
)
def test_markdown_is_drawn_but_mentions_and_links_are_not(text: str, shown: str) -> None:
    assert markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at 2026-11-01 12:00 UTC, *", "at <t:1793534400:f>, \\*"),
        ("2026-11-01 00:30 CET (2026-10-31 23:30 UTC)", "<t:1793489400:f>"),
        ("2026-02-31 12:00 UTC and 2026-11-01", "2026-02-31 12:00 UTC and 2026-11-01"),
    ],
)
def test_times_in_utc_are_shown_in_the_reader_s_zone(text: str, shown: str) -> None:
    assert with_times(text) == shown

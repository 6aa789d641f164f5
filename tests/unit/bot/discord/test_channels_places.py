from typing import Any
from unittest.mock import Mock

import discord
import pytest

from bot.discord.channels import SubmissionDisplay, display_for


def asked_in(channel: object, guild: int | None) -> discord.Interaction[Any]:
    return Mock(
        spec=discord.Interaction,
        id=8,
        channel=channel,
        channel_id=7,
        guild_id=guild,
        user=Mock(id=9),
    )


@pytest.mark.parametrize("guild", [None, 5])
def test_a_submission_is_shown_where_it_came_from(guild: int | None) -> None:
    display = display_for(asked_in(None, guild))
    assert display.door == "discord"
    place = SubmissionDisplay.model_validate_json(display.place)
    in_guild = guild is not None
    assert place == SubmissionDisplay(channel=7, user=9, in_guild=in_guild, answer="discord:8")


def test_from_a_thread_it_is_shown_in_the_thread_s_channel() -> None:
    thread = Mock(spec=discord.Thread, parent_id=3)
    assert (
        SubmissionDisplay.model_validate_json(display_for(asked_in(thread, 5)).place).channel == 3
    )


def test_direct_messages_come_before_a_thread_and_that_before_the_channel() -> None:
    place = SubmissionDisplay(channel=1, user=9, in_guild=True)
    assert place.private == 1
    assert place.model_copy(update={"thread": 2}).private == 2
    assert place.model_copy(update={"thread": 2, "direct": 3}).private == 3


def test_what_an_older_or_newer_podium_wrote_is_read() -> None:
    written = (
        '{"channel": 1, "user": 9, "in_guild": true, "thread": 2, "opened": true, '
        '"what_comes_later": 5}'
    )
    place = SubmissionDisplay.model_validate_json(written)
    assert (place.direct, place.private, place.answer) == (None, 2, None)

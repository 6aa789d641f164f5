"""Errors begin with a mark and a capital, and name commands as links."""

from unittest.mock import patch

import pytest

from bot.discord import responses
from bot.discord.context import DiscordContext
from bot.discord.responses import error_message
from bot.domain.errors import UserError
from tests.doubles.clock import ManualClock
from tests.doubles.interaction import answer_texts, command_used
from tests.doubles.memory_store import MemoryStore

IDS = {"leaderboard": 7}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("run `/leaderboard show` first", "⚠️ Run </leaderboard show:7> first"),
        ("see `/leaderboard submit test` *now*", "⚠️ See </leaderboard submit test:7> \\*now\\*"),
        ("run `/unknown show`", "⚠️ Run \\`/unknown show\\`"),
        ("see `/leaderboard task x:1`", "⚠️ See \\`/leaderboard task x:1\\`"),
        ("task.yml:3: no such key", "⚠️ task.yml:3: no such key"),
    ],
)
def test_an_error_is_marked_and_its_commands_can_be_clicked(said: str, shown: str) -> None:
    with patch.dict(responses.COMMAND_IDS, IDS, clear=True):
        assert error_message(UserError("x", said)) == shown


def test_channels_stay_links() -> None:
    shown = error_message(UserError("wrong-channel", "submit in <#5> or in a direct message"))
    assert shown == "⚠️ Submit in <#5> or in a direct message"


async def test_what_is_said_has_links_too_unless_it_would_no_longer_fit() -> None:
    context = DiscordContext(MemoryStore(ManualClock()), ManualClock())
    interaction, long = command_used(context), "`/leaderboard show`" + "x" * 1980
    with patch.dict(responses.COMMAND_IDS, IDS, clear=True):
        answer = responses.InteractionReply(interaction)
        await answer.say("`/leaderboard show` shows \\`/leaderboard list\\`")
        interaction.edit_original_response.assert_awaited_once()
        await responses.InteractionReply(interaction).say(long)
        await responses.InteractionReply(interaction).conclude("done: `/leaderboard show`")
    assert answer_texts(interaction) == [
        "</leaderboard show:7> shows \\`/leaderboard list\\`",
        long,
        "done: </leaderboard show:7>",
    ]

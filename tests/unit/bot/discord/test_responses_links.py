"""Errors begin with a mark and a capital, and name commands as links."""

from unittest.mock import patch

import pytest

from bot.discord import responses
from bot.discord.responses import error_message
from bot.domain.errors import UserError

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

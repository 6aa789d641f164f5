from urllib.parse import parse_qs, urlparse

import discord

from bot.discord.setup_check import NEEDED, bot_invite_link, missing_permissions, needed_permissions


def test_the_link_asks_for_just_what_is_needed() -> None:
    link = urlparse(bot_invite_link(17))
    asked = parse_qs(link.query)
    assert link.netloc == "discord.com"
    assert asked["client_id"] == ["17"]
    assert asked["scope"] == ["bot applications.commands"]
    granted = discord.Permissions(int(asked["permissions"][0]))
    assert granted == needed_permissions()
    assert sum(value for _, value in granted) == len(NEEDED)
    assert missing_permissions(granted.value) == ()


def test_what_is_missing_is_named_and_an_administrator_lacks_nothing() -> None:
    granted = needed_permissions()
    granted.update(manage_threads=False, attach_files=False)
    assert missing_permissions(granted.value) == ("Manage Threads", "Attach Files")
    assert missing_permissions(discord.Permissions(administrator=True).value) == ()

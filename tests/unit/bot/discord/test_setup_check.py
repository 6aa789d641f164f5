from urllib.parse import parse_qs, urlparse

import discord

from bot.discord.setup_check import NEEDED, invite_link, lacking, wanted


def test_the_link_asks_for_just_what_is_needed() -> None:
    link = urlparse(invite_link(17))
    asked = parse_qs(link.query)
    assert link.netloc == "discord.com"
    assert asked["client_id"] == ["17"]
    assert asked["scope"] == ["bot applications.commands"]
    granted = discord.Permissions(int(asked["permissions"][0]))
    assert granted == wanted()
    assert sum(value for _, value in granted) == len(NEEDED)
    assert lacking(granted.value) == ()


def test_what_is_missing_is_named_and_an_administrator_lacks_nothing() -> None:
    granted = wanted()
    granted.update(manage_threads=False, attach_files=False)
    assert lacking(granted.value) == ("Manage Threads", "Attach Files")
    assert lacking(discord.Permissions(administrator=True).value) == ()

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qs, urlparse

import discord
import pytest

from bot.discord.channels import SUBMISSIONS
from bot.discord.context import DiscordSettings
from bot.discord.roles import guild_key
from bot.discord.setup_check import (
    NEEDED,
    bot_invite_link,
    missing_permissions,
    needed_permissions,
    welcome,
)
from bot.domain.errors import SetupError
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.place import Place


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


@dataclass
class Host:
    """A host who sets up a server of the local Discord."""

    server: LocalDiscord
    guild: Guild
    place: Place

    async def set_up(self) -> str | None:
        settings = DiscordSettings(self.server.token, self.server.environment["DISCORD_API_BASE"])
        return await welcome(settings, self.guild.id, "identity", self.place.store)

    @property
    def channels(self) -> list[str]:
        return [each.name for each in self.guild.channels if each.name != "general"]


@pytest.fixture
async def host(place: Place) -> AsyncIterator[Host]:
    async with LocalDiscord() as server:
        yield Host(server, server.guild("gpu"), place)
        server.assert_clean()


async def test_a_server_that_is_set_up_twice_has_one_channel_and_one_message(host: Host) -> None:
    first = await host.set_up()
    assert await host.set_up() == first
    assert host.channels == [SUBMISSIONS]
    assert len(host.guild.channel(SUBMISSIONS).messages) == 1


async def test_a_channel_that_an_admin_deleted_is_not_created_again(host: Host) -> None:
    await host.set_up()
    host.guild.world.channels.clear()
    assert await host.set_up() is None
    assert host.channels == []


async def test_a_channel_that_an_admin_renamed_gets_the_message(host: Host) -> None:
    room = host.guild.create_channel("kernels")
    await host.place.store.moderation.keep_part(guild_key(host.guild.id), SUBMISSIONS, str(room.id))
    assert str(room.id) in (await host.set_up() or "")
    assert host.channels == ["kernels"]
    assert len(room.messages) == 1


async def test_a_channel_that_the_bot_creates_meanwhile_is_not_created_twice(host: Host) -> None:
    claim = host.place.store.moderation.claim_part
    assert await claim(guild_key(host.guild.id), SUBMISSIONS, timedelta(seconds=60))
    with pytest.raises(SetupError, match="run the command again"):
        await host.set_up()
    assert host.channels == []

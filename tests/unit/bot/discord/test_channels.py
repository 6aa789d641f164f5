import discord
import pytest

from bot.discord import channels
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord_room import room as a_room

NEEDED = ["view_channel", "create_private_threads", "send_messages_in_threads"]


@pytest.mark.parametrize("missing", [None, *NEEDED])
def test_a_private_thread_takes_three_permissions(missing: str | None) -> None:
    may = discord.Permissions(**{name: name != missing for name in NEEDED})
    assert channels.may_open_thread(may) == (missing is None)


async def test_only_a_text_channel_in_sight_is_a_room() -> None:
    async with a_room(permissions=Permission.MANAGE_ROLES) as here:
        hidden = here.guild.create_channel("hidden")
        hidden.deny(here.guild.everyone, Permission.VIEW_CHANNEL)
        forum = here.guild.create_channel("forum", ChannelKind.FORUM)
        found = [
            await channels.channel_of(here.client, number)
            for number in (here.channel.id, forum.id, 5)
        ]
        assert [each is not None for each in found] == [True, False, False]
        channel = found[0]
        assert channel is not None
        assert channels.bot_permissions(channel).send_messages
        assert not channels.bot_permissions(channel).manage_threads


async def test_an_announcement_channel_has_no_private_threads() -> None:
    async with a_room() as here:
        news = here.guild.create_channel("news", ChannelKind.NEWS)
        await here.server.wait_for(lambda: here.client.get_channel(news.id))
        found = [await channels.channel_of(here.client, each.id) for each in (here.channel, news)]
        assert [channels.has_private_threads(each) for each in found if each] == [True, False]
        here.server.assert_clean()

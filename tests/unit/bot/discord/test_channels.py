import discord
import pytest

from bot.discord import channels
from tests.doubles.discord.errors import DriverError
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


async def test_submissions_are_allowed_in_text_channels_alone() -> None:
    async with a_room(commands=True) as here:
        admin = await here.admin_role()
        here.guild.members[here.alice.id].roles.add(admin.id)
        news = here.guild.create_channel("news", ChannelKind.NEWS)
        await here.server.wait_for(lambda: here.client.get_channel(news.id))
        (offered,) = [each for each in here.server.commands if each["name"] == "admin"]
        (command,) = [each for each in offered["options"] if each["name"] == "channel-allow"]
        (option,) = [each for each in command["options"] if each["name"] == "channel"]
        assert option["channel_types"] == [ChannelKind.TEXT]
        with pytest.raises(DriverError, match="news"):  # a client does not offer it
            await here.alice.slash("admin channel-allow", channel=news)
        run = await here.alice.slash("admin channel-allow", channel=here.channel)
        assert "Submissions are allowed in" in (await run.final()).text


async def test_a_channel_that_became_one_for_announcements_is_refused() -> None:
    async with a_room(commands=True) as here:
        admin = await here.admin_role()
        here.guild.members[here.alice.id].roles.add(admin.id)
        channel = here.client.get_channel(here.channel.id)
        assert isinstance(channel, discord.TextChannel)
        channel._type = discord.ChannelType.news.value
        run = await here.alice.slash("admin channel-allow", channel=here.channel)
        assert "Choose a text channel that I can see" in (await run.final()).text


async def test_discord_refuses_private_threads_in_announcement_channels() -> None:
    async with a_room() as here:
        news = here.guild.create_channel("news", ChannelKind.NEWS)
        await here.server.wait_for(lambda: here.client.get_channel(news.id))
        channel = await channels.channel_of(here.client, news.id)
        assert channel is not None
        with pytest.raises(discord.HTTPException) as refused:
            await channels.open_thread(channel, "x")
        assert refused.value.code == 50024
        message = await channel.send("Results")
        thread = await message.create_thread(name="Results")
        assert thread.type is discord.ChannelType.news_thread
        assert news.threads[0].kind is ChannelKind.NEWS_THREAD

"""Each step of setting a server up is found, done or not, with what to do about it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot.discord.alerts import ALERTS
from bot.discord.channels import SUBMISSIONS
from bot.discord.context import DiscordSettings
from bot.discord.guild_check import SetupStep, examine_guilds
from bot.discord.roles import ADMIN, PURPOSES, guild_key
from bot.discord.setup_check import check_setup
from tests.doubles.discord.model.channels import Overwrite
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.place import Place


@dataclass
class Look:
    """A server of the local Discord, and what the database knows of it."""

    server: LocalDiscord
    guild: Guild
    place: Place

    async def found(
        self, *trusted: int, stored: bool = True, examples: frozenset[str] = frozenset()
    ) -> dict[str, SetupStep]:
        environment = self.server.environment
        settings = DiscordSettings(
            self.server.token, environment["DISCORD_API_BASE"], trusted_guilds=frozenset(trusted)
        )
        guilds = (await check_setup(settings)).guilds
        store = self.place.store if stored else None
        return {each.name: each async for each in examine_guilds(settings, guilds, store, examples)}

    async def keep(self, purpose: str, number: int) -> None:
        await self.place.store.moderation.keep_part(guild_key(self.guild.id), purpose, str(number))


@pytest.fixture
async def look(place: Place) -> AsyncIterator[Look]:
    async with LocalDiscord() as server:
        yield Look(server, server.guild("gpu", EVERYONE), place)
        server.assert_clean()


async def test_a_server_where_the_bot_never_ran_lacks_roles_and_channels(look: Look) -> None:
    found = await look.found(stored=False)
    missing = ["admins in gpu", "creators in gpu", "submissions in gpu", "alerts in gpu"]
    for name in missing:
        assert not found[f"Discord {name}"].is_done
    assert "`podium up` creates it" in found["Discord admins in gpu"].remedy
    assert "`podium up` creates #submissions" in found["Discord submissions in gpu"].remedy
    assert "`/admin alerts`" in found["Discord alerts in gpu"].remedy
    assert "podium discord setup" in found["boards"].remedy


async def test_steps_that_are_done_name_roles_and_channels_with_ids(look: Look) -> None:
    admins = look.guild.create_role("bosses", Permission.MANAGE_THREADS)
    look.server.user("alice", look.guild, roles=[admins])
    creators = look.guild.create_role("Leaderboard Creator")
    room, alarms = look.guild.create_channel("kernels"), look.guild.create_channel("alarms")
    for purpose, part in ((PURPOSES[ADMIN], admins), (SUBMISSIONS, room), (ALERTS, alarms)):
        await look.keep(purpose, part.id)
    found = await look.found()
    assert all(each.is_done for each in found.values())
    assert {name: each.detail for name, each in found.items()} == {
        "Discord admins in gpu": f"people with the role bosses, id {admins.id}",
        "Discord creators in gpu": f"people with the role Leaderboard Creator, id {creators.id}",
        "Discord submissions in gpu": "in #kernels",
        "Discord alerts in gpu": "in #alarms",
        "boards": look.place.board.name,
        "own board": look.place.board.name,
    }


async def test_the_role_of_admins_is_given_to_at_least_one_person(look: Look) -> None:
    admins = look.guild.create_role("bosses", Permission.MANAGE_THREADS)
    await look.keep(PURPOSES[ADMIN], admins.id)
    found = (await look.found())["Discord admins in gpu"]
    assert found.detail == f"no member has the role bosses, id {admins.id}"
    assert "Server Settings, Members" in found.remedy
    look.server.user("alice", look.guild, roles=[admins])
    assert (await look.found())["Discord admins in gpu"].is_done


async def test_a_board_of_an_example_is_no_own_board(look: Look) -> None:
    found = await look.found(examples=frozenset({look.place.board.name}))
    assert found["boards"].is_done
    assert not found["own board"].is_done
    assert "`/leaderboard create`" in found["own board"].remedy


async def test_deleted_roles_and_hidden_channels_are_reported(look: Look) -> None:
    room = look.guild.create_channel("kernels")
    room.overwrites[look.guild.id] = Overwrite(0, deny=Permission.SEND_MESSAGES)
    for purpose, number in ((PURPOSES[ADMIN], 99), (SUBMISSIONS, room.id), (ALERTS, 98)):
        await look.keep(purpose, number)
    found = await look.found()
    assert "`/admin roles`" in found["Discord admins in gpu"].remedy
    assert found["Discord submissions in gpu"].detail == "the bot cannot write in #kernels"
    assert found["Discord alerts in gpu"].detail == "their channel was deleted"


async def test_an_admin_role_without_the_permission_is_named_by_its_present_name(
    look: Look,
) -> None:
    await look.keep(PURPOSES[ADMIN], look.guild.create_role("bosses").id)
    found = (await look.found())["Discord admins in gpu"]
    assert found.detail == "their role bosses lacks Manage Threads, so they do not see `/admin`"


async def test_only_servers_whose_roles_give_rights_are_examined(look: Look) -> None:
    other = look.server.guild("other")
    found = await look.found(other.id)
    assert {name for name in found if name.endswith("in gpu")} == set()
    assert "Discord admins in other" in found

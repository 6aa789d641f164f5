"""What whoever runs the bot asks the command line: the invite link, and the doctor."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from bot.discord.setup_check import needed_permissions
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.server import LocalDiscord
from tests.e2e.command import Podium, fresh, refusal
from tests.e2e.discord.scene import Scene, scene

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with fresh() as found:
        yield found


@pytest.fixture
async def server() -> AsyncIterator[LocalDiscord]:
    async with LocalDiscord() as running:
        yield running


async def _requirements(podium: Podium, server: LocalDiscord) -> dict[str, dict[str, str]]:
    answer = await asyncio.to_thread(podium, "doctor", "--json", **server.environment)
    assert answer.returncode == 0, answer.stderr
    return {each["name"]: each for each in json.loads(answer.stdout)}


async def test_the_doctor_names_what_a_guild_does_not_allow(
    podium: Podium, server: LocalDiscord
) -> None:
    small = server.guild("small", EVERYONE)
    small.create_role("Leaderboard Admin")
    server.guild("right").create_role("Leaderboard Admin", Permission.MANAGE_THREADS)
    found = await _requirements(podium, server)
    assert found["Discord"]["found"]
    assert found["Discord guild small"]["detail"] == (
        "the bot lacks Manage Threads, Manage Roles, Manage Channels"
    )
    assert "lacks Manage Threads" in found["Discord role in small"]["detail"]
    assert "Discord role in right" not in found
    server.assert_clean()


async def test_a_bot_without_a_guild_gets_the_link_that_invite_prints(
    podium: Podium, server: LocalDiscord
) -> None:
    found = await _requirements(podium, server)
    printed = await asyncio.to_thread(podium, "discord", "invite", **server.environment)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.strip() in found["Discord"]["remedy"]
    server.assert_clean()


async def test_a_token_that_discord_refuses_is_a_fault(
    podium: Podium, server: LocalDiscord
) -> None:
    wrong = server.environment | {"DISCORD_TOKEN": "wrong"}
    answer = await asyncio.to_thread(podium, "doctor", **wrong)
    assert answer.returncode == 3
    assert "copy DISCORD_TOKEN again" in answer.stdout
    invite = await asyncio.to_thread(podium, "discord", "invite", **wrong)
    assert "copy DISCORD_TOKEN again" in refusal(invite, 3)


def test_a_link_needs_a_token_or_an_application(podium: Podium) -> None:
    assert "--application" in refusal(podium("discord", "invite"), 2)
    link = podium("discord", "invite", "--application", "17")
    assert "client_id=17" in link.stdout


async def test_the_permissions_that_the_link_asks_for_are_enough() -> None:
    async with scene(permissions=Permission(needed_permissions().value)) as stage:
        await (await stage.submit(stage.alice, "time_us=30")).final()
        thread = await stage.alice.sees_thread("identity: ")
        await stage.alice.sees("passed, ranked on CPU", thread, within=30)
        await stage.bob.sees("1st of 1 on CPU: 30.00 µs", stage.submissions, within=30)
        shown = await stage.bob.slash("leaderboard show", leaderboard_name="identity")
        assert (await shown.final()).files
        await stage.server.wait_for(lambda: any("Creator" in each for each in _roles(stage)), 10)
        stage.server.assert_clean()


def _roles(stage: Scene) -> list[str]:
    return [role.name for role in stage.guild.roles.values()]

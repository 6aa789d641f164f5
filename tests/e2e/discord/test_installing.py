"""What whoever runs the bot asks the command line: the invite link, and the doctor."""

import asyncio
import json
import subprocess
import sys
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
    assert found["Discord server small"]["detail"] == (
        "the bot lacks Manage Threads, Manage Roles, Manage Channels"
    )
    assert "lacks Manage Threads" in found["Discord admins in small"]["detail"]
    assert found["Discord admins in right"]["found"]
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


def _typed(podium: Podium, text: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`podium discord setup`, with this text on its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "bot", "discord", "setup", "--wait", "60"],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=podium.folder,
        env=podium.environment | settings,
    )


async def _found(podium: Podium, settings: dict[str, str]) -> dict[str, dict[str, str]]:
    doctor = await asyncio.to_thread(podium, "doctor", "--json", **settings)
    return {each["name"]: each for each in json.loads(doctor.stdout)}


async def test_a_first_server_is_set_up_with_one_command() -> None:
    async with LocalDiscord() as server:
        with fresh("fake:CPU=1") as podium:
            settings = {
                key: value for key, value in server.environment.items() if key != "DISCORD_TOKEN"
            }
            wrong = await asyncio.to_thread(_typed, podium, "not a token\n", settings)
            assert "this is no token" in refusal(wrong, 2)
            refused = await asyncio.to_thread(_typed, podium, "wrong\n", settings)
            assert "Discord rejects the token" in refusal(refused, 3)
            assert not (podium.folder / "data" / "discord_token").exists()
            typed = asyncio.to_thread(_typed, podium, f"{server.token}\n", settings)
            running = asyncio.create_task(typed)
            await server.wait_for(lambda: len(server.requests) >= 4, 60)
            guild = server.guild("gpu")
            done = await asyncio.wait_for(running, 90)
            assert done.returncode == 0, done.stderr
            said = done.stdout + done.stderr
            assert "open this link" in said and server.token not in said  # noqa: PT018
            assert "board identity is published" in said
            room = guild.channel("submissions")
            assert f"/{guild.id}/{room.id}" in said
            assert "`/leaderboard template leaderboard_name:identity`" in room.messages[0].content
            assert (await asyncio.to_thread(_typed, podium, "", settings)).returncode == 0
            assert len(room.messages) == 1  # the first message is not posted again
            assert (podium.folder / "data" / "discord_token").stat().st_mode & 0o077 == 0
            found = await _found(podium, settings)
            assert found["Discord"]["found"]
            assert f"DISCORD_TRUSTED_GUILDS={guild.id}" in found["Discord rights"]["remedy"]
            trusted = settings | {"DISCORD_TRUSTED_GUILDS": str(guild.id)}
            found = await _found(podium, trusted)
            assert found["Discord rights"]["detail"] == "give rights in gpu"
            server.assert_clean(allowing=(0,))


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

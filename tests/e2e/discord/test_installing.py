"""What whoever runs the bot asks the command line: the invite link, and the doctor."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from bot.discord.setup_check import needed_permissions
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.process import podium_command, program
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import Podium, fresh, refusal
from tests.e2e.discord.scene import scene
from tests.e2e.discord.test_releases import files, zipped

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
    right = server.guild("right")
    admins = right.create_role("Leaderboard Admin", Permission.MANAGE_THREADS)
    server.user("host", right, roles=[admins])
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


async def test_a_start_warns_of_no_missing_library(server: LocalDiscord) -> None:
    server.guild("gpu")
    with fresh("fake:CPU=1") as podium:
        log, up = podium.folder / "bot.log", program(sys.executable, "-m", "bot", "up")
        async with server.spawn(up, log, environment=podium.environment):
            await server.wait_for(lambda: server.syncs, 60)
        written = log.read_text() + (podium.folder / "data" / "podium.log").read_text()
    assert "commands were published" in written
    for word in ("PyNaCl", "davey", "Warning", '"warning"', "[warning"):
        assert word not in written


_RIGHTS, _SUBMISSIONS, _BOARDS = "Discord rights", "Discord submissions in gpu", "boards"
_UP, _ADMINS, _ALERTS = "podium up", "Discord admins in gpu", "Discord alerts in gpu"
_OWN = "own board"


async def test_the_doctor_checks_every_step_of_a_first_hour() -> None:
    async with LocalDiscord() as server:
        guild = server.guild("gpu")
        host = server.user("host", guild)
        with fresh("fake:CPU=1") as podium:
            settings = dict(server.environment)

            async def missing() -> set[str]:
                lines = await _found(podium, settings)
                return {name for name, line in lines.items() if not line["found"]} & _STEPS

            assert await missing() == _STEPS
            settings["DISCORD_TRUSTED_GUILDS"] = str(guild.id)  # step 2
            assert await missing() == _STEPS - {_RIGHTS}
            assert (await asyncio.to_thread(_typed, podium, "", settings)).returncode == 0
            assert await missing() == {_UP, _ADMINS, _ALERTS, _OWN}
            environment = podium.environment | settings
            up = podium_command("up")
            async with server.spawn(up, podium.folder / "bot.log", environment=environment):
                await server.wait_for(lambda: "Leaderboard Admin" in _names(guild), 60)
                await _until_missing(missing, {_ADMINS, _ALERTS, _OWN})
                remedy = (await _found(podium, settings))[_ADMINS]["remedy"]
                assert "give it to yourself" in remedy
                guild.members[host.id].roles.add(guild.role("Leaderboard Admin").id)
                await _until_missing(missing, {_ALERTS, _OWN})
                host.goes_to(guild.channel("submissions"))
                alarms = guild.create_channel("alarms")
                await (await host.slash("admin alerts", channel=alarms)).final()
                await _until_missing(missing, {_OWN})
                await _create_board(host)
                assert await missing() == set()
                server.assert_clean()


_STEPS = {_RIGHTS, _SUBMISSIONS, _BOARDS, _UP, _ADMINS, _ALERTS, _OWN}
"""The lines of the doctor for steps 2, 3 and 5 to 8 of the README."""


async def _until_missing(missing: Callable[[], Awaitable[set[str]]], wanted: set[str]) -> None:
    """Wait until the doctor finds nothing else missing: a Podium that starts is not found yet."""
    async with asyncio.timeout(60):
        while await missing() != wanted:  # noqa: ASYNC110 - the doctor is a process
            await asyncio.sleep(1)  # Discord limits how often it answers


async def _create_board(host: Person) -> None:
    zip_file = zipped(files())
    created = await host.slash(
        "leaderboard create", leaderboard_name="mine", task_zip=zip_file, gpus="CPU"
    )
    await created.final()
    thread = await host.sees_thread(": mine", within=60)
    await host.sees("mine on CPU is published", thread, within=60)


def _names(guild: Guild) -> list[str]:
    return [role.name for role in guild.roles.values()]


def test_a_link_needs_a_token_or_an_application(podium: Podium) -> None:
    assert "--application" in refusal(podium("discord", "invite"), 2)
    link = podium("discord", "invite", "--application", "17")
    assert "client_id=17" in link.stdout


async def test_the_permissions_that_the_link_asks_for_are_enough() -> None:
    async with scene(permissions=Permission(needed_permissions().value)) as stage:
        await (await stage.submit(stage.alice, "time_us=30")).final()
        thread = await stage.alice.sees_thread("identity: ")
        await stage.alice.sees("passed in a ranked run on CPU", thread, within=30)
        await stage.bob.sees("1st of 1 on CPU: 30.00 µs", stage.submissions, within=30)
        shown = await stage.bob.slash("leaderboard show", leaderboard_name="identity")
        assert (await shown.final()).files
        await stage.server.wait_for(
            lambda: any("Creator" in each for each in _names(stage.guild)), 10
        )
        stage.server.assert_clean()

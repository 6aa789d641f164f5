"""A host with a new Discord bot and a server: what the README's steps say, in their order.

After each step, `podium doctor` shows whether it is done.
"""

import asyncio
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.people import Role
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.process import podium_command
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium, fresh

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

LIMIT_S = 40.0
MOST_STEPS = 8
STEP = re.compile(r"^(\d+)\. (.+(?:\n   .+)*)", re.MULTILINE)
COMMAND = re.compile(r"`\.venv/bin/podium ([a-z ]+)`")
ADMIN = "Leaderboard Admin"
INVITED = (
    Permission.MANAGE_ROLES | Permission.MANAGE_CHANNELS | Permission.MANAGE_THREADS | EVERYONE
)


def steps() -> list[str]:
    """The README's numbered steps to a bot on Discord."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## On Discord\n")[2].partition("\n## ")[0]
    found = STEP.findall(section)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [" ".join(words.split()) for _, words in found]


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with fresh("local") as found:
        yield found


class Terminal:
    """A command at a terminal, with everything that it shows there."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: Path) -> None:
        self.reads, writes = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bot", *words],
            stdin=writes,
            stdout=writes,
            stderr=writes,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(writes)

    def types(self, text: str) -> None:
        os.write(self.reads, f"{text}\n".encode())

    def sees(self, words: str) -> None:
        """Wait until the terminal shows this; fail when the command ends before."""
        end = time.monotonic() + LIMIT_S
        while words not in self.shown:
            assert time.monotonic() < end, self.shown
            ready, _, _ = select.select([self.reads], [], [], 1.0)
            if not ready:
                continue
            try:
                self.shown += os.read(self.reads, 65536).decode(errors="replace")
            except OSError:  # the command has ended
                assert words in self.shown, self.shown
        self.shown = self.shown.replace("\r", "")

    def closes(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
        os.close(self.reads)


async def done(podium: Podium, settings: dict[str, str]) -> dict[str, bool]:
    """The steps that `podium doctor` reports, by name."""
    answer = await asyncio.to_thread(podium, "doctor", "--json", **settings)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return {each["name"]: each["found"] for each in json.loads(answer.stdout)}


def test_the_steps_are_few_and_name_existing_commands(podium: Podium) -> None:
    found = steps()
    assert len(found) <= MOST_STEPS
    for command in (each for step in found for each in COMMAND.findall(step)):
        shown = podium(*command.split(), "--help")
        assert shown.returncode == 0, command
    assert [COMMAND.findall(each) for each in found if COMMAND.findall(each)] == [
        ["discord setup"],
        ["doctor"],
    ]


def _roles(guild: Guild) -> dict[str, Role]:
    return {each.name: each for each in guild.roles.values()}


def _all(run: Interaction) -> str:
    return "\n".join(each.text for each in (run.message, *run.followups))


async def _set_up(podium: Podium, server: LocalDiscord, environment: dict[str, str]) -> Guild:
    """Type the token at a terminal, add the bot by its link, and return the steps that are done."""
    terminal = Terminal(["discord", "setup"], environment, podium.folder)
    try:
        return await _answer(terminal, server)
    finally:
        terminal.closes()


async def _answer(terminal: "Terminal", server: LocalDiscord) -> Guild:
    await asyncio.to_thread(terminal.sees, "Bot page): ")
    terminal.types(server.token)
    await asyncio.to_thread(terminal.sees, "open this link, choose your server, and confirm: ")
    assert "oauth2/authorize?client_id=" in terminal.shown
    guild = server.guild("gpu", INVITED)
    await asyncio.to_thread(terminal.sees, "next: ")
    assert await asyncio.to_thread(terminal.process.wait, LIMIT_S) == 0, terminal.shown
    assert server.token not in terminal.shown
    assert "board identity is published" in terminal.shown
    (room,) = [each for each in guild.channels if each.name == "submissions"]
    (message,) = room.messages
    assert "`/leaderboard submit ranked`" in message.content
    return guild


async def test_a_host_goes_through_the_steps(podium: Podium) -> None:
    async with LocalDiscord() as server:
        settings = {k: v for k, v in server.environment.items() if k != "DISCORD_TOKEN"}
        before = await done(podium, settings)
        assert not before["Discord"]
        guild = await _set_up(podium, server, podium.environment | settings)
        settings["DISCORD_TRUSTED_GUILDS"] = str(guild.id)
        after = await done(podium, settings)
        for name in ("Discord", "Discord rights", "Discord submissions in gpu", "boards"):
            assert after[name]
        assert not after["Discord admins in gpu"]
        log, environment = podium.folder / "up.log", podium.environment | settings
        async with server.spawn(podium_command("up"), log, environment=environment):
            await server.wait_for(lambda: server.syncs, LIMIT_S)
            await server.wait_for(lambda: ADMIN in _roles(guild), LIMIT_S)
            served = await done(podium, settings)
            assert not served["Discord admins in gpu"]
            assert not served["Discord alerts in gpu"]
            host = server.user("host", guild, roles=[_roles(guild)[ADMIN]])
            await _use_as_admin(podium, guild, host)
            found = await done(podium, settings)
            assert found["Discord admins in gpu"]
            assert found["Discord alerts in gpu"]
        assert [each.name for each in guild.channels].count("submissions") == 1
        server.assert_clean(allowing=(0,))


async def _use_as_admin(podium: Podium, guild: Guild, host: Person) -> None:
    """Choose a channel for alerts, and make a board from a task."""
    host.goes_to(guild.channel("submissions"))
    alarms = guild.create_channel("alarms")
    told = await (await host.slash("admin alerts", channel=alarms)).final()
    assert "gets the alerts" in told.text
    file = podium.folder / "mine.zip"
    packed = await asyncio.to_thread(podium, "task", "pack", IDENTITY, "--out", file)
    assert packed.returncode == 0, packed.stderr
    task = File("mine.zip", file.read_bytes())
    run = await host.slash("leaderboard create", leaderboard_name="mine", task_zip=task, gpus="CPU")
    await guild.world.wait_for(lambda: "Checking your task" in _all(run), LIMIT_S)

"""During a rolling restart two copies of the bot run at once, and nobody sees two answers."""

from collections import Counter
from pathlib import Path

import pytest

from tests.doubles.databases import fresh_database
from tests.doubles.discord.limits import Rates
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium
from tests.e2e.discord.scene import QUICK, START_S, UP, kernel

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ALREADY_ANSWERED = 40060
ROUNDS = 6


def copy_of_podium(folder: Path, dsn: str) -> Podium:
    folder.mkdir()
    return Podium(folder, "fake", DATABASE_URL=dsn)


async def test_every_command_is_answered_once_and_every_submission_shown_once(
    open_folder_root: Path,
) -> None:
    async with fresh_database() as dsn, LocalDiscord(rates=Rates(QUICK)) as server:
        copies = [copy_of_podium(open_folder_root / f"copy-{n}", dsn) for n in range(2)]
        published = copies[0]("task", "publish", IDENTITY, "--unchecked")
        assert published.returncode == 0, published.stderr
        guild = server.guild("gpu")
        room = guild.create_channel("submissions")
        alice = server.user("alice", guild)
        alice.goes_to(room)
        logs = [copy.folder / "bot.log" for copy in copies]
        async with (
            server.spawn(UP, logs[0], environment=copies[0].environment),
            server.spawn(UP, logs[1], environment=copies[1].environment),
        ):
            await server.wait_for(lambda: len(server.gateway.connected) == 2, START_S)
            await submit_all(alice)
            # Of each submission a private thread, and the public one of its line.
            await server.wait_for(lambda: len(room.threads) >= 2 * ROUNDS, 60)
        counts = Counter(each.name for each in room.threads)
        assert set(counts.values()) == {2}
        assert len(counts) == len(public_lines(alice, room)) == ROUNDS
        server.assert_clean(allowing=[ALREADY_ANSWERED])
        # Every gateway event reached both copies, so one of them had to give way each time.
        assert len(server.refused) <= ROUNDS


async def submit_all(alice: Person) -> None:
    for number in range(1, ROUNDS + 1):
        script = kernel(f"time_us={number + 10}")
        run = await alice.slash(
            "leaderboard submit ranked", script=script, leaderboard_name="identity"
        )
        assert f"Submission #{number} is stored" in (await run.final()).text
        assert not run.followups


def public_lines(alice: Person, room: Channel) -> list[str]:
    return [each.text for each in alice.messages(room) if "s submission #" in each.text]

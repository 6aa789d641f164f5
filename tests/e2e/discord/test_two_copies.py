"""During a rolling restart two copies of the bot run at once, and nobody sees two answers."""

import asyncio
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from tests.doubles.databases import fresh_database
from tests.doubles.discord.limits import CALLBACK, Rates
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.process import BotProcess
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium
from tests.e2e.discord.scene import START_S, UP, kernel

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ALREADY_ANSWERED = 40060
THREAD_MEMBER = "/channels/{channel_id}/thread-members/{user_id}"
ROUNDS = 6
TIMES = [100, 90, 80, 70]
"""Microseconds, each of them a record."""
THINKS_S = 0.5
"""Nobody chooses before the answer of Discord has told the bot which message it has sent."""
ANSWERED_S = 1.9
"""The copy that did not ask waits for longer than that."""


@dataclass(repr=False)
class Pair:
    """Alice and bob are members, carol is an admin of the boards; all are in #submissions."""

    server: LocalDiscord
    guild: Guild
    room: Channel
    alice: Person
    bob: Person
    carol: Person
    first: BotProcess
    dsn: str

    async def rows(self, query: str) -> list[asyncpg.Record]:
        """What the database has."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetch(query)
        finally:
            await connection.close()


def folder_in(root: Path) -> Path:
    """A new folder, in which a sandbox may run."""
    folder = Path(tempfile.mkdtemp(dir=root))
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def two_copies(
    root: Path, runner: str = "fake", gpus: tuple[str, ...] = ("CPU",)
) -> AsyncIterator[Pair]:
    # Discord counts the requests of both together and each knows its own: no windows here.
    async with fresh_database() as dsn, LocalDiscord(rates=Rates(0)) as server:
        guild = server.guild("gpu")
        environment = {"DATABASE_URL": dsn, "DISCORD_TRUSTED_GUILDS": str(guild.id)}
        copies = [Podium(folder_in(root), runner, **environment) for n in range(2)]
        chosen = [word for gpu in gpus for word in ("--gpu", gpu)]
        published = copies[0]("task", "publish", IDENTITY, "--unchecked", *chosen)
        assert published.returncode == 0, published.stderr
        room = guild.create_channel("submissions")
        admin = guild.create_role("Leaderboard Admin", Permission.MANAGE_THREADS)
        people = server.user("alice", guild), server.user("bob", guild)
        carol = server.user("carol", guild, roles=[admin])
        for person in (*people, carol):
            person.goes_to(room)
        logs = [copy.folder / "bot.log" for copy in copies]
        async with (
            server.spawn(UP, logs[0], environment=copies[0].environment) as first,
            server.spawn(UP, logs[1], environment=copies[1].environment),
        ):
            await server.wait_for(lambda: len(server.gateway.connected) == 2, START_S)
            yield Pair(server, guild, room, *people, carol, first, dsn)
        assert exceptions(root) == []


def exceptions(root: Path) -> list[str]:
    """What the copies have logged with a traceback."""
    lines = [line for log in root.rglob("podium.log") for line in log.read_text().splitlines()]
    return [line for line in lines if "exception" in line]


def reported(pair: Pair) -> Counter[str]:
    """How often the person's thread has the report of each submission."""
    threads = [each for each in pair.room.threads if each.private]
    texts = [each.text for thread in threads for each in pair.alice.messages(thread)]
    return Counter(each.split(":")[0] for each in texts if each.startswith("**submission #"))


async def test_every_command_is_answered_once_and_every_submission_shown_once(
    open_folder_root: Path,
) -> None:
    async with two_copies(open_folder_root) as pair:
        await submit_all(pair.alice)
        await pair.server.wait_for(lambda: len(reported(pair)) == ROUNDS, 60)
        await pair.alice.sees(f"s submission #{ROUNDS} ", pair.room, within=60)
        await asyncio.sleep(1)
    assert set(reported(pair).values()) == {1}
    assert len(pair.room.threads) == 2
    lines = public_lines(pair.alice, pair.room)
    # A run that was already beaten when its turn came changed nothing.
    assert len(lines) == len(set(lines)) >= 1
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])
    # Every gateway event reached both copies, so one of them had to give way each time.
    assert len(pair.server.refused) <= ROUNDS


async def test_a_copy_that_is_stopped_in_the_middle_leaves_nothing_to_be_shown_twice(
    open_folder_root: Path,
) -> None:
    async with two_copies(open_folder_root) as pair:
        # The thread is made, and nobody can write that down yet.
        with pair.server.faults.during(Fault("PUT", THREAD_MEMBER, status=None)) as unanswered:
            await submit_all(pair.alice, "test")
            await pair.server.wait_for(lambda: unanswered.hits, 30)
            await pair.first.stop()
        await submit(pair.alice, "time_us=9", mode="test")  # a hint to look for more
        await pair.server.wait_for(lambda: len(reported(pair)) == ROUNDS + 1, 120)
    assert set(reported(pair).values()) == {1}
    assert len(pair.room.threads) == 1
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def test_news_is_told_once(open_folder_root: Path) -> None:
    async with two_copies(open_folder_root) as pair:
        hall = pair.guild.create_channel("records")
        await (await pair.carol.slash("admin notices", channel=hall, record=True)).final()
        await (await pair.bob.slash("profile notices", pair.bob.dm, record=True)).final()
        for time_us in TIMES:
            await submit(pair.alice, f"time_us={time_us}")
            await pair.bob.sees(f"Alice takes {time_us}", hall, within=30)
        await pair.bob.sees(f"Alice takes {TIMES[-1]}", pair.bob.dm, within=30)
    assert len([each for each in pair.bob.messages(hall) if "Record on" in each.text]) == len(TIMES)
    assert len([each for each in pair.bob.dms if "Record on" in each.text]) == len(TIMES)
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def says(pair: Pair, message: Message, text: str) -> None:
    """Wait until a message says that."""
    await pair.server.wait_for(lambda: text in message.text, 10)


async def test_a_question_is_answered_by_the_copy_that_asked(open_folder_root: Path) -> None:
    async with two_copies(open_folder_root, "fake:CPU=1:H100=1", ("CPU", "H100")) as pair:
        for _ in range(ROUNDS):
            run = await submit(pair.alice, "time_us=9", mode="test")
            asked = await run.final()
            await asyncio.sleep(THINKS_S)
            chosen = await pair.alice.select(asked.select("GPU types: CPU to H100"), ["H100"])
            assert chosen.latency < ANSWERED_S
            pressed = await pair.alice.click(asked, "Submit")
            await says(pair, asked, "is stored: test on H100")
            assert not pressed.followups
        await pair.server.wait_for(lambda: len(reported(pair)) == ROUNDS, 60)
    assert set(reported(pair).values()) == {1}
    assert len(pair.room.threads) == 1  # a test is told to nobody else
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def test_of_a_submission_whose_acknowledgements_are_lost_one_is_made(
    open_folder_root: Path,
) -> None:
    async with two_copies(open_folder_root) as pair:
        lost = Fault("POST", CALLBACK, status=502, carried_out=True, count=2 * ROUNDS)
        with pair.server.faults.during(lost):
            await submit_all(pair.alice, "test")
        assert lost.hits >= ROUNDS
        made = await pair.rows("select id from submissions where id > 0")
        assert len(made) == ROUNDS
        await pair.server.wait_for(lambda: len(reported(pair)) == ROUNDS, 60)
        await nothing_is_kept(pair, ROUNDS)
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def test_a_copy_that_is_killed_while_it_acknowledges_is_replaced_by_the_other(
    open_folder_root: Path,
) -> None:
    async with two_copies(open_folder_root) as pair:
        silent = Fault("POST", CALLBACK, status=None, carried_out=True)
        with pair.server.faults.during(silent):
            script, board = kernel("time_us=9"), "identity"
            run = pair.alice.begin_slash(
                "leaderboard submit test", script=script, leaderboard_name=board
            )
            await pair.server.wait_for(lambda: silent.hits)
            await pair.first.stop(signal.SIGKILL)
        assert "Submission #1 is stored" in (await run.final(within=30)).text
        assert not run.followups
        await nothing_is_kept(pair, 1)
        assert len(await pair.rows("select id from submissions where id > 0")) == 1
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def test_while_the_database_is_away_that_is_said_and_then_it_is_made_once(
    open_folder_root: Path,
) -> None:
    async with two_copies(open_folder_root) as pair:
        connection = await asyncpg.connect(pair.dsn)
        locking = connection.transaction()
        await locking.start()
        await connection.execute("lock table interactions in access exclusive mode")
        run = await submit(pair.alice, "time_us=9", mode="test")
        assert 1 <= run.latency < 3
        assert "The database is unavailable" in (await run.final()).text
        await locking.rollback()
        await connection.close()
        await pair.server.wait_for(lambda: "Submission #1 is stored" in run.message.text, 20)
        assert not run.followups
        await nothing_is_kept(pair, 1)
        assert len(await pair.rows("select id from submissions where id > 0")) == 1
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def test_what_is_told_again_is_not_made_again(open_folder_root: Path) -> None:
    async with two_copies(open_folder_root) as pair:
        script, board = kernel("time_us=9"), "identity"
        run = pair.alice.begin_slash(
            "leaderboard submit test", script=script, leaderboard_name=board
        )
        run.repeat()
        assert "Submission #1 is stored" in (await run.final()).text
        run.repeat()
        await (await submit(pair.alice, "time_us=9", mode="test")).final()
        assert len(await pair.rows("select id from submissions where id > 0")) == 2
        # It was acknowledged once, and filled once.
        calls = [each.method for each in pair.server.requests if run.token in each.path]
        assert calls[:2] == ["POST", "PATCH"]
        assert "POST" not in calls[1:]
    pair.server.assert_clean()


async def nothing_is_kept(pair: Pair, done: int) -> None:
    """Wait until everything is done and shown: no token is left then."""
    async with asyncio.timeout(20):
        while True:
            rows = await pair.rows("select token, request, done_at from interactions")
            kept = [row for row in rows if row["token"] or row["request"]]
            if len(rows) == done and all(row["done_at"] for row in rows) and not kept:
                break
            await asyncio.sleep(0.1)


async def test_a_button_is_answered_once(open_folder_root: Path) -> None:
    async with two_copies(open_folder_root) as pair:
        await (await submit(pair.alice, "time_us=9", mode="test")).final()
        thread = await pair.alice.sees_thread("identity: ", within=30)
        await pair.alice.sees("passed", thread, within=30)
        live = next(each for each in pair.alice.messages(thread) if each.buttons)
        for _ in range(ROUNDS):
            pressed = await pair.alice.click(live, "Source")
            assert (await pressed.final()).files
            assert not pressed.followups
    pair.server.assert_clean(allowing=[ALREADY_ANSWERED])


async def submit_all(alice: Person, mode: str = "ranked") -> None:
    for number in range(1, ROUNDS + 1):
        run = await submit(alice, f"time_us={100 - number}", mode)
        assert f"Submission #{number} is stored" in (await run.final()).text
        assert not run.followups


async def submit(who: Person, directive: str, mode: str = "ranked") -> Interaction:
    script = kernel(directive)
    return await who.slash(f"leaderboard submit {mode}", script=script, leaderboard_name="identity")


def public_lines(alice: Person, room: Channel) -> list[str]:
    told = [each.text for place in alice.threads(room) for each in alice.messages(place)]
    return [text for text in told if "s submission #" in text]

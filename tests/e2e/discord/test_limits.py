"""What Discord limits, reached on purpose: names, files, permissions, a slow database, the line."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from bot.store.embedded import open_database
from tests.doubles.discord.model.files import File
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.wire import Json
from tests.doubles.dispatching import until
from tests.e2e.discord.scene import Scene, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]
SOURCE = b"def custom_kernel(data):\n    return data\n"
INVITED = (
    EVERYONE | Permission.MANAGE_THREADS | Permission.MANAGE_ROLES | Permission.MANAGE_CHANNELS
)
"""What `podium discord invite` asks for."""


@asynccontextmanager
async def database(stage: Scene) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """The database of the running bot, past its store."""
    async with open_database(stage.podium.folder / "data") as found:
        line = await asyncpg.connect(found.dsn)
        try:
            yield line
        finally:
            await line.close()


async def test_a_file_name_of_a_hundred_letters_is_taken_and_shown(stage: Scene) -> None:
    """Discord itself keeps odd signs out of a file's name; what is left may still be long."""
    script = File("a" * 97 + ".py", b"# fake: time_us=30\n" + SOURCE)
    run = await stage.alice.slash(
        "leaderboard submit test", script=script, leaderboard_name="identity"
    )
    said = (await run.final()).text
    assert "is stored" in said
    number = said.split("#")[1].split()[0]
    thread = await stage.alice.sees_thread("identity: ", within=30)
    report = await stage.alice.sees(f"submission #{number}:", thread, within=30)
    assert not report.pings
    stage.server.assert_clean()


async def test_a_longer_file_name_is_refused(stage: Scene) -> None:
    run = await stage.alice.slash(
        "leaderboard submit test",
        script=File("a" * 98 + ".py", SOURCE),
        leaderboard_name="identity",
    )
    assert "A file name must have 1 to 100 characters" in (await run.final()).text
    stage.server.assert_clean()


async def test_a_file_at_the_limit_is_taken_and_given_back(stage: Scene) -> None:
    source = SOURCE + b"#" * (1_000_000 - len(SOURCE))
    script = File("large.py", source)
    run = await stage.alice.slash(
        "leaderboard submit test", script=script, leaderboard_name="identity"
    )
    said = (await run.final()).text
    number = int(said.split("#")[1].split()[0])
    shown = await (await stage.alice.slash("submission source", id=number)).final()
    assert shown.files[0].data == source
    stage.server.assert_clean()


async def test_while_the_database_is_slow_a_command_is_acknowledged(stage: Scene) -> None:
    async with database(stage) as line, line.transaction():
        await line.execute("lock table people, boards, submissions in access exclusive mode")
        run = await stage.submit(stage.alice, "time_us=30")
        assert run.latency < 1
        await asyncio.sleep(4)
        assert run.message.loading
    assert "is stored" in (await run.final()).text
    stage.server.assert_clean()


async def test_without_permission_for_threads_the_answer_has_the_report() -> None:
    async with scene(permissions=INVITED) as stage:
        stage.submissions.deny(stage.guild.everyone, Permission.CREATE_PRIVATE_THREADS)
        run = await stage.submit(stage.alice, "time_us=30")
        assert "`/submission show id:1` shows them at any time" in (await run.final()).text
        await stage.server.wait_for(lambda: "passed in a ranked run on CPU" in run.message.text, 30)
        await stage.bob.sees("1st of 1 on CPU", stage.submissions, within=30)
        assert stage.alice.dms == []
        shown = await stage.alice.slash("submission show", id=1)
        assert "passed in a ranked run on CPU" in (await shown.final()).text
        stage.server.assert_clean()


async def test_a_job_that_outlives_the_token_goes_on_in_its_own_messages() -> None:
    async with scene() as stage:
        run = await stage.submit(stage.alice, "time_us=30 seconds=8")
        await run.final()
        async with database(stage) as line:
            await line.execute("update interactions set asked_at = asked_at - interval '15 min'")
        stage.server.clock.advance(901)
        thread = await stage.alice.sees_thread("identity: ", within=30)
        await stage.alice.sees("Submission #1", thread, within=30)
        await stage.alice.sees("passed in a ranked run on CPU", thread, within=30)
        stage.server.assert_clean()


async def test_reconnects_and_invalid_sessions_lose_nothing() -> None:
    async with scene() as stage:
        gateway = stage.server.gateway
        first = await stage.submit(stage.alice, "time_us=30 seconds=4")
        assert "is stored" in (await first.final()).text
        for upset in (
            gateway.drop,
            gateway.reconnect,
            lambda: gateway.invalidate(resumable=True),
            gateway.invalidate,
            lambda: gateway.close(4009),
        ):
            upset()
            await asyncio.sleep(0.2)
            await stage.server.wait_for(lambda: gateway.connected, 40)
            run = await stage.submit(stage.bob, "time_us=20")
            assert "is stored" in (await run.final()).text
        await stage.bob.sees("2nd of 2 on CPU", stage.submissions, within=60)
        stage.server.assert_clean()


async def test_a_choice_among_a_thousand_boards_is_offered_in_time(stage: Scene) -> None:
    async with database(stage) as line:
        await line.execute(
            "with made as (insert into boards (name, gpus, creator, created_at) "
            "select 'board-' || n, gpus, creator, created_at "
            "from boards, generate_series(1, 1000) as n where name = 'identity' returning id) "
            "insert into task_versions (board, number, digest, definition, created_at) "
            "select made.id, 1, digest, definition, created_at from made, task_versions "
            "where board = (select id from boards where name = 'identity')"
        )
        await line.execute(
            "update boards set task_version = task_versions.id from task_versions "
            "where board = boards.id and name like 'board-%'"
        )
    found: list[Json] = []

    async def known() -> bool:  # once the bot has read them
        found[:] = await stage.alice.autocomplete(
            "leaderboard submit ranked", "leaderboard_name", "board-99"
        )
        return bool(found)

    await until(known, within_s=10)
    assert [each["value"] for each in found][:2] == ["board-99", "board-990"]
    assert (
        len(
            await stage.alice.autocomplete("leaderboard submit ranked", "leaderboard_name", "board")
        )
        == 25
    )
    stage.server.assert_clean()

"""An engine that is killed in any state: another one goes on, and does nothing twice."""

import asyncio
import sys
from pathlib import Path

import pytest

from bot.app.context import SystemClock
from bot.discord.context import FRONT_END as DISCORD
from bot.domain.ids import PublicationId
from bot.domain.publication import PublishChange
from bot.ports import Store
from bot.services.publishing.state import PublicationState
from bot.store.postgres import open_store
from bot.web.context import FRONT_END as WEB
from tests.doubles.dispatching import until
from tests.doubles.publisher import STATES, Posts, hand_in, publishing

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


async def kill_in(state: str, dsn: str, posts: Path, publications: int = 2) -> None:
    """Run the engines in a process of their own, and kill it when all are in this state."""
    command = (sys.executable, "-m", "tests.doubles.publisher", dsn, str(posts), state)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(90):
            for _ in range(publications):
                while await process.stdout.readline() != b"reached\n":
                    assert process.returncode is None
                    assert not process.stdout.at_eof()
    finally:
        process.kill()
        await process.wait()


async def ended(store: Store, web: PublicationId, discord: PublicationId) -> bool:
    notes = [
        await store.publications.summary(WEB, web),
        await store.publications.summary(DISCORD, discord),
    ]
    return all(note is not None and note.ended_at is not None for note in notes)


@pytest.mark.parametrize("state", STATES)
async def test_a_publication_is_published_and_told_once(
    state: str, postgres_dsn: str, tmp_path: Path
) -> None:
    posts = Posts(tmp_path / "posts")
    async with open_store(postgres_dsn, SystemClock()) as store:
        ada = (await store.people.ensure("local:ada", "ada")).id
        web = await hand_in(store, ada, WEB, "page")
        discord = await hand_in(store, ada, DISCORD, "room")
        await kill_in(state, postgres_dsn, posts.file)
        stored = state in {"published", "outcome", "told"}
        assert (await store.boards.find("page") is not None) is stored
        async with publishing(store, posts):
            await until(lambda: ended(store, web, discord), 60)
        for name in ("page", "room"):
            board = await store.boards.find(name)
            assert board is not None
            assert len(await store.boards.versions(board.id)) == 1
        actions = [row.action for row in await store.audit.rows()]
        assert actions.count("publish-created") == 2
        note = await store.publications.summary(WEB, web)
        assert note is not None
        outcome = PublicationState.model_validate_json(note.state).outcome
        assert outcome is not None
        assert (outcome.message, outcome.change) == (
            "page on CPU is published.",
            PublishChange.CREATED,
        )
        sent = [f"release-{discord}-{each}" for each in ("live", "1", "news")]
        assert posts.nonces() == sent

"""Transactions on real Postgres: killed, cut off, cancelled, and more of them than connections."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import PersonId
from bot.domain.job import SYSTEM_PRIORITY
from bot.domain.submission import Ban, NewSubmission
from bot.ports import Store
from bot.services import moderation
from bot.services.moderation import Decision
from bot.store.postgres import PostgresStore
from bot.store.postgres.database import MOST_CONNECTIONS
from runners.contract.task import Mode
from tests.doubles.stored import Scene, set_up

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

WITHIN_S = 20.0
BANS = """
import asyncio, sys
from bot.services.moderation import Decision, ban
from bot.app.context import SystemClock
from bot.store.postgres import open_store

async def main():
    async with open_store(sys.argv[1], SystemClock()) as store:
        ada = await store.people.find("local:ada")
        print("opened", flush=True)
        await ban(store, Decision(ada.id, "forged times"), "local:bob")
        print("banned", flush=True)

asyncio.run(main())
"""
WAITS_FOR_RECORD = """
select pid from pg_stat_activity
where query like 'insert into audit%' and wait_event_type = 'Lock' and datname = current_database()
"""
WAITING_CONNECTIONS = """
select pid from pg_stat_activity
where state = 'idle in transaction' and datname = current_database()
"""


@pytest.fixture
async def scene(postgres_store: PostgresStore) -> Scene:
    return await set_up(postgres_store)


@pytest.fixture
async def onlooker(postgres_dsn: str) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    """A connection of its own, to look at what others do and to hold them up."""
    connection = await asyncpg.connect(postgres_dsn)
    yield connection
    await connection.close()


async def test_a_process_killed_between_change_and_record_leaves_neither(
    scene: Scene, postgres_dsn: str, onlooker: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    waiting = await scene.submit(bob)
    async with _no_record_can_be_made(postgres_dsn):
        process = await _banning(postgres_dsn)
        await _seen(onlooker, WAITS_FOR_RECORD)
        process.kill()
        await process.wait()
    await _gone(onlooker, WAITS_FOR_RECORD)
    assert await scene.store.moderation.ban_of(bob.id) is None
    assert await scene.store.audit.rows() == ()
    assert (await scene.claim_one()).submission == waiting.id


async def test_a_process_killed_after_the_record_leaves_both(
    scene: Scene, postgres_dsn: str
) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    process = await _banning(postgres_dsn)
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), WITHIN_S) == b"banned\n"
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    assert await scene.store.moderation.ban_of(bob.id) == Ban("forged times")
    assert [row.action for row in await scene.store.audit.rows()] == ["ban"]


async def test_a_task_cancelled_while_the_database_works_stores_nothing(
    scene: Scene, postgres_dsn: str, onlooker: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    async with _no_record_can_be_made(postgres_dsn):
        deed = Decision(scene.ada.id, "forged times")
        tasks = [
            asyncio.create_task(moderation.ban(scene.store, deed, "local:bob"))
            for _ in range(MOST_CONNECTIONS)
        ]
        await _seen(onlooker, WAITS_FOR_RECORD)
        for times in range(3):  # whoever is told once more is cancelled while undoing
            for task in tasks[times:]:
                task.cancel()
            await asyncio.sleep(0)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(each) for each in ended} == {asyncio.CancelledError}
    assert await scene.store.moderation.ban_of(bob.id) is None
    assert await scene.store.audit.rows() == ()
    await _all_connections_work(scene.store)


async def test_a_connection_lost_in_the_middle_stores_nothing_and_is_replaced(
    scene: Scene, onlooker: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    with pytest.raises(StoreError):
        await _cut_off(scene.store, onlooker)
    assert await scene.store.moderation.pause_notice() is None
    await _all_connections_work(scene.store)


async def _cut_off(store: Store, onlooker: "asyncpg.Connection[asyncpg.Record]") -> None:
    async with store.transaction() as tx:
        await tx.moderation.pause("full")
        (pid,) = [row["pid"] for row in await onlooker.fetch(WAITING_CONNECTIONS)]
        await onlooker.execute("select pg_terminate_backend($1)", pid)
        await _gone(onlooker, WAITING_CONNECTIONS)
        await tx.audit.record(None, "pause", "submissions", "")


async def test_a_refusal_after_the_connection_was_lost_is_still_an_error(
    scene: Scene, onlooker: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    async def refuse() -> None:
        async with scene.store.transaction() as tx:
            await tx.moderation.pause("full")
            (pid,) = [row["pid"] for row in await onlooker.fetch(WAITING_CONNECTIONS)]
            await onlooker.execute("select pg_terminate_backend($1)", pid)
            await _gone(onlooker, WAITING_CONNECTIONS)
            raise UserError("test", "no")

    with pytest.raises((UserError, StoreError)):
        await refuse()
    assert await scene.store.moderation.pause_notice() is None
    await _all_connections_work(scene.store)


async def test_more_transactions_than_connections_need_no_second_one_each(scene: Scene) -> None:
    store, all_began = scene.store, asyncio.Event()
    began: list[PersonId] = []

    async def change(number: int) -> None:
        async with store.transaction() as tx:
            person = await tx.people.ensure(f"local:{number}", "x")
            began.append(person.id)
            if len(began) == MOST_CONNECTIONS:
                all_began.set()
            await all_began.wait()
            submission = await Scene(tx, scene.board, person).submit()
            async with tx.transaction() as inner:
                await inner.jobs.request_cancel(submission.id)
            await tx.requests.tallies(scene.board.id)
            await tx.results.entrants(scene.board.task_version, "CPU")
            await tx.audit.record(person.id, "test", str(number), "")

    changes = [change(number) for number in range(3 * MOST_CONNECTIONS)]
    await asyncio.wait_for(asyncio.gather(*changes), WITHIN_S)
    assert len(await store.audit.rows()) == 3 * MOST_CONNECTIONS


async def test_every_role_in_a_transaction_uses_its_connection(
    postgres_store: PostgresStore,
) -> None:
    async with postgres_store.transaction() as tx:
        roles = [role for role in vars(tx).values() if hasattr(role, "_database")]
        bound = [vars(role)["_database"].bound for role in roles]
        assert len(roles) >= 19
        assert len(set(bound)) == 1
        assert None not in bound


async def test_a_store_is_good_for_nothing_after_its_transaction(scene: Scene) -> None:
    async with scene.store.transaction() as tx:
        await tx.moderation.pause("full")
    with pytest.raises(StoreError):
        await tx.moderation.resume()
    assert await scene.store.moderation.pause_notice() == "full"


async def test_an_order_that_is_refused_leaves_the_transaction_as_it_is(
    scene: Scene, onlooker: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    """Two order the same reference: the second waits for the first, and is refused."""
    house = await scene.store.people.ensure(SYSTEM_IDENTITY, "Podium")
    new = NewSubmission(
        person=house.id,
        board=scene.board.id,
        task_version=scene.board.task_version,
        file_name="reference.py",
        source="",
        mode=Mode.RANKED,
        gpus=("CPU",),
        priority=SYSTEM_PRIORITY,
    )
    first_ordered, second_asks = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with scene.store.transaction() as tx:
            assert await tx.references.order(new)
            first_ordered.set()
            await second_asks.wait()
            await _seen(onlooker, "select 1 from pg_locks where not granted")

    async def second() -> None:
        await first_ordered.wait()
        async with scene.store.transaction() as tx:
            second_asks.set()
            assert not await tx.references.order(new)
            await tx.moderation.pause("full")

    await asyncio.wait_for(asyncio.gather(first(), second()), WITHIN_S)
    assert await scene.store.moderation.pause_notice() == "full"


async def _banning(dsn: str) -> asyncio.subprocess.Process:
    """Another process that is about to ban bob."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BANS, dsn, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), WITHIN_S) == b"opened\n"
    return process


@asynccontextmanager
async def _no_record_can_be_made(dsn: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            await connection.execute("lock table audit in exclusive mode")
            yield
    finally:
        await connection.close()


async def _seen(onlooker: "asyncpg.Connection[asyncpg.Record]", wanted: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await onlooker.fetch(wanted):
            await onlooker.execute("select pg_sleep(0.01)")


async def _gone(onlooker: "asyncpg.Connection[asyncpg.Record]", unwanted: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while await onlooker.fetch(unwanted):
            await onlooker.execute("select pg_sleep(0.01)")


async def _all_connections_work(store: Store) -> None:
    """As many at once as there are, each without a transaction that is left over."""
    changes = [_pause_and_resume(store) for _ in range(MOST_CONNECTIONS)]
    await asyncio.wait_for(asyncio.gather(*changes), WITHIN_S)


async def _pause_and_resume(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.moderation.pause("test")
        await tx.moderation.resume()

"""The Postgres queue under many workers, deep backlogs and refused writes."""

import asyncio
import random
from contextlib import AsyncExitStack
from datetime import timedelta

import asyncpg
import pytest

from bot.domain.errors import StoreError
from bot.domain.ids import EventId, JobId
from bot.domain.job import Claim, Job, JobState
from bot.domain.scoring import ScoreValue
from bot.store.postgres import PostgresStore, open_store
from bot.store.postgres.database import query
from bot.store.postgres.queue import PostgresJobs
from runners.contract.task import Mode
from tests.benchmarks.queue import FILL, fill
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stored import LEASE, Scene, make_evaluation, set_up

pytestmark = pytest.mark.postgres


async def test_workers_of_several_processes_never_share_a_job_nor_pass_the_limit(
    postgres_dsn: str, postgres_store: PostgresStore, clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    for _ in range(60):
        await scene.submit()
    await postgres_store.jobs.limit("CPU", 7)
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_store(postgres_dsn, clock)) for _ in "abc"]
        seen: list[tuple[JobId, int]] = []

        async def drain(store: PostgresStore, worker: str) -> None:
            while held := await store.jobs.claim(Claim(worker, {"CPU": 3}, LEASE)):
                backlog = await store.jobs.backlog()
                assert backlog["CPU"]["running"] <= 7
                for job in held:
                    seen.append((job.id, job.fence))
                    assert await store.jobs.accept(job.id, job.fence, make_evaluation(), None)

        await asyncio.gather(*(drain(store, f"w{n}") for n, store in enumerate(stores)))
        await drain(stores[0], "last")
    assert len(seen) == len(set(seen)) == 60
    assert await postgres_store.jobs.backlog() == {}


async def test_ten_thousand_jobs_of_one_person_do_not_hold_up_another(
    postgres_dsn: str, postgres_store: PostgresStore, clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    bob = await postgres_store.people.ensure("local:bob", "Bob")
    await scene.submit()
    await fill(postgres_dsn, scene, [scene.ada.id], 10_000)
    await fill(postgres_dsn, scene, [bob.id], 20)
    # The bulk rows are due at the server's time, which is later than the fixed day of the test.
    clock.advance(timedelta(days=10_000).total_seconds())
    order = [job.person for _ in range(5) for job in await scene.claim(8)]
    assert order == [scene.ada.id, bob.id] * 20


async def test_claims_and_submissions_read_few_rows_when_statistics_take_the_queue_for_empty(
    postgres_dsn: str, postgres_store: PostgresStore, clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    await scene.submit()
    await scene.claim_one()
    clock.advance(timedelta(days=10_000).total_seconds())
    async with AsyncExitStack() as stack:
        filling, other = [await asyncpg.connect(postgres_dsn) for _ in "ab"]
        for connection in (filling, other):
            stack.push_async_callback(connection.close)
        board = scene.board
        async with filling.transaction():
            await filling.execute(FILL, [scene.ada.id], board.id, board.task_version, 5000)
            await other.execute("vacuum analyze jobs")
        before = await _index_rows_read(other)
        assert len(await scene.claim(8)) == 8
        await scene.submit()
        assert await _index_rows_read(other) - before < 500


async def _index_rows_read(connection: "asyncpg.Connection[asyncpg.Record]") -> int:
    """Rows that every session has read from the indexes of jobs, as the server counted them."""
    await asyncio.sleep(1.2)  # sessions hand in their counts about once a second
    return int(
        await connection.fetchval(
            "select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'jobs'"
        )
    )


async def test_submissions_of_one_person_at_once_each_get_a_turn_of_their_own(
    postgres_store: PostgresStore,
) -> None:
    scene = await set_up(postgres_store)
    made = await asyncio.gather(*(scene.submit() for _ in range(30)))
    turns = [(await scene.job(one.id)).turn for one in made]
    assert sorted(turns) == list(range(1, 31))


async def test_an_evaluation_whose_score_is_refused_leaves_nothing_behind(
    postgres_store: PostgresStore,
) -> None:
    scene = await set_up(postgres_store)
    submission = await scene.submit()
    job = await scene.claim_one()
    with pytest.raises(StoreError):
        await postgres_store.jobs.accept(job.id, job.fence, make_evaluation(), ScoreValue(-1, 0))
    assert await postgres_store.results.evaluations(submission.id) == ()
    assert (await scene.job(submission.id)).state is JobState.RUNNING
    events = await postgres_store.jobs.events(submission.id, EventId(0))
    assert [event.kind for event in events] == ["queued", "running"]


async def test_events_of_one_submission_appear_in_the_order_of_their_ids(
    postgres_dsn: str, postgres_store: PostgresStore
) -> None:
    scene = await set_up(postgres_store)
    submission = await scene.submit(gpus=("A", "B"))
    first, second = [await scene.claim_one(gpu) for gpu in ("A", "B")]
    slow = await asyncpg.connect(postgres_dsn)
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(
        "update jobs set state = 'failed', lease_until = null, finished_at = now() where id = $1",
        first.id,
    )
    told = asyncio.create_task(
        postgres_store.jobs.add_progress(second.id, second.fence, "test", {})
    )
    await asyncio.sleep(0.2)
    assert not told.done()
    await transaction.commit()
    await slow.close()
    assert await told
    events = await postgres_store.jobs.events(submission.id, EventId(0))
    assert [event.kind for event in events][-2:] == ["failed", "test"]


@pytest.mark.parametrize("seed", range(3))
async def test_both_stores_claim_a_random_backlog_in_the_same_order(
    postgres_store: PostgresStore, memory_store: MemoryStore, clock: ManualClock, seed: int
) -> None:
    orders = []
    for store in (postgres_store, memory_store):
        chance = random.Random(seed)  # noqa: S311 - a seed for a test, not a secret
        orders.append(await _random_order(await set_up(store), chance))
    assert orders[0] == orders[1]
    assert len(orders[0]) == 40


async def _random_order(scene: Scene, chance: random.Random) -> list[tuple[str, int]]:
    """The names and numbers of jobs that random people submit and a worker claims in batches."""
    people = [await scene.store.people.ensure(f"p:{n}", f"p{n}") for n in range(5)]
    names: dict[int, tuple[str, int]] = {}
    claimed: list[Job] = []
    for number in range(40):
        person = chance.choice(people)
        mode = chance.choice([Mode.TEST, Mode.RANKED, Mode.RANKED])
        names[(await scene.submit(person, mode=mode)).id] = (person.name, number)
        if chance.random() < 0.2:
            claimed += await scene.claim(chance.randint(1, 4))
    while batch := await scene.claim(chance.randint(1, 4)):
        claimed += batch
    return [names[job.submission] for job in claimed]


async def test_a_step_is_told_while_the_worker_ends_the_same_job(
    postgres_dsn: str, postgres_store: PostgresStore
) -> None:
    scene = await set_up(postgres_store)
    await scene.submit()
    job = await scene.claim_one()
    other = await asyncpg.connect(postgres_dsn)
    for name, values in (
        ("jobs.lock_held", (job.id, job.fence)),
        ("jobs.lock_unfinished", (job.submission,)),
        ("jobs.lock_expired", (job.created_at + timedelta(days=1), 10)),
    ):
        transaction = other.transaction()
        await transaction.start()
        assert len(await other.fetch(query(name), *values)) == 1
        # The event refers to the job, whose key must not be locked: whoever ends the job waits for
        # the submission, which the telling of the step has.
        async with asyncio.timeout(5):
            assert await postgres_store.jobs.add_progress(job.id, job.fence, "test", {})
        await transaction.rollback()
    await other.close()


async def test_what_was_claimed_is_given_when_the_database_goes_away_on_the_way(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = await set_up(postgres_store)
    first = await scene.submit(gpus=("A", "B"))
    claim_of = PostgresJobs._claim_of

    async def away_for_b(jobs: PostgresJobs, gpu: str, claim: Claim) -> list[Job]:
        if gpu == "B":
            raise StoreError("the database is away")
        return await claim_of(jobs, gpu, claim)

    monkeypatch.setattr(PostgresJobs, "_claim_of", away_for_b)
    claimed = await postgres_store.jobs.claim(Claim("w", {"A": 1, "B": 1}, LEASE))
    assert [(job.submission, job.gpu) for job in claimed] == [(first.id, "A")]
    with pytest.raises(StoreError, match="is away"):
        await postgres_store.jobs.claim(Claim("w", {"A": 1, "B": 1}, LEASE))

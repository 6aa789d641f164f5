import asyncio
from dataclasses import replace

from bot.domain.ids import EventId
from bot.domain.job import JobState
from bot.domain.submission import KEY_TTL
from bot.services.maintenance import recover
from tests.doubles.dispatching import failing
from tests.doubles.place import Place


async def run_for(place: Place, seconds: float) -> None:
    stop = asyncio.Event()
    reaper = asyncio.create_task(recover(place.store, stop, every_s=0.01))
    await asyncio.sleep(seconds)
    stop.set()
    await asyncio.wait_for(reaper, 1)


async def test_a_job_whose_worker_vanished_is_queued_again(place: Place) -> None:
    submission = await place.submit()
    await place.claim()
    await run_for(place, 0.02)
    assert (await place.jobs(submission))[0].state is JobState.RUNNING
    place.clock.advance(31)
    await run_for(place, 0.02)
    assert (await place.jobs(submission))[0].state is JobState.QUEUED


async def test_the_steps_of_what_ended_long_ago_are_forgotten(place: Place) -> None:
    ended = await place.submit()
    await place.judged(ended)
    place.clock.advance(8 * 24 * 3600)
    fresh = await place.submit()
    await run_for(place, 0.02)
    assert await place.store.jobs.events(ended.id, EventId(0)) == ()
    assert len(await place.store.jobs.events(fresh.id, EventId(0))) == 1


async def test_keys_of_submissions_are_forgotten_after_a_day(place: Place) -> None:
    await place.submit(key="k")
    place.clock.advance(KEY_TTL.total_seconds())
    await run_for(place, 0.02)
    assert await place.store.submissions.delete_expired_keys() == 0


async def test_a_database_that_is_away_forgets_later(place: Place) -> None:
    away = {"delete_events": 1}
    await run_for(replace(place, store=failing(place.store, away)), 0.02)
    assert away == {"delete_events": 0}


async def test_the_reaper_ends_at_once_when_it_is_told_to(place: Place) -> None:
    stop = asyncio.Event()
    reaper = asyncio.create_task(recover(place.store, stop, every_s=3600))
    await asyncio.sleep(0)
    stop.set()
    ended, _ = await asyncio.wait({reaper}, timeout=1)
    assert ended == {reaper}
    assert reaper.exception() is None


async def test_the_reaper_outlives_a_database_that_is_away(place: Place) -> None:
    submission = await place.submit()
    await place.claim()
    place.clock.advance(31)
    away = {"requeue_expired": 1}
    await run_for(replace(place, store=failing(place.store, away)), 0.05)
    assert away == {"requeue_expired": 0}
    assert (await place.jobs(submission))[0].state is JobState.QUEUED

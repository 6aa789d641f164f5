from datetime import timedelta

from bot.domain.board import NOBODY, Access, Viewer, Visibility
from bot.services.operations import GpuQueue, gpu_queues, job_estimates, may_know
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)


async def test_each_gpu_with_jobs_workers_or_a_pause_is_told_of(place: Place) -> None:
    await place.submit()
    await place.submit()
    await place.claim()
    await place.store.workers.announce("box", ("CPU", "L4"), LEASE)
    await place.store.workers.announce("new", None, LEASE)
    await place.store.moderation.pause_gpu("H100", "hot")
    assert await gpu_queues(place.store) == (
        GpuQueue("CPU", queued=1, running=1, workers=1, paused=None),
        GpuQueue("H100", queued=0, running=0, workers=0, paused="hot"),
        GpuQueue("L4", queued=0, running=0, workers=1, paused=None),
    )


async def test_the_expected_end_of_a_job_follows_from_recent_jobs(place: Place) -> None:
    for _ in range(3):
        await place.judged(await place.submit(), wall_s=10.0)
    running, waiting = await place.submit(), await place.submit()
    await place.claim()
    place.clock.advance(4)
    found = await job_estimates(place.store, place.clock)
    assert [each.job.submission for each in found] == [running.id, waiting.id]
    assert found[0].ends_in_s == 6.0
    assert found[1].ends_in_s == 15.0
    place.clock.advance(30)
    assert (await job_estimates(place.store, place.clock))[0].ends_in_s == 0.0


async def test_an_end_is_unknown_before_jobs_have_ended(place: Place) -> None:
    await place.submit()
    (waiting,) = await job_estimates(place.store, place.clock)
    assert waiting.ends_in_s is None


async def test_jobs_on_private_boards_are_shown_only_to_people_who_see_the_board(
    place: Place,
) -> None:
    eve = await place.person("eve")
    await place.submit(eve)
    await place.asked()
    private = Access(visibility=Visibility.PRIVATE)
    await place.store.boards.restrict(place.board.id, private)
    (of_eve,) = await job_estimates(place.store, place.clock)
    assert may_know(Viewer(eve), of_eve)
    assert may_know(Viewer(NOBODY, sees_all=True), of_eve)
    assert may_know(Viewer(place.ada), of_eve)  # the board's creator
    assert not may_know(Viewer(NOBODY), of_eve)
    assert not may_know(Viewer(await place.person("bob")), of_eve)

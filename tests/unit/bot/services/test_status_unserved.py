from datetime import timedelta

from bot.services.status import unserved, unserved_in_words
from tests.doubles.factories import make_capabilities
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)


async def test_without_a_worker_everything_waits_in_vain(place: Place) -> None:
    submission = await place.submit()
    assert await unserved(place.store, submission.id) == ("CPU",)


async def test_a_worker_with_the_gpu_type_is_waited_for_while_it_lives(place: Place) -> None:
    submission = await place.submit()
    await place.store.workers.announce("w", ("CPU",), LEASE)
    assert await unserved(place.store, submission.id) == ()
    place.clock.advance(31)
    assert await unserved(place.store, submission.id) == ("CPU",)


async def test_a_worker_whose_runners_still_start_may_offer_anything(place: Place) -> None:
    submission = await place.submit()
    await place.store.workers.announce("w", None, LEASE)
    assert await unserved(place.store, submission.id) == ()


async def test_what_can_be_judged_is_waited_for_before_the_rest_is_given_up(place: Place) -> None:
    await place.store.boards.configure(place.board.id, ("CPU", "H100"), None)
    submission = await place.submit(gpus=("CPU", "H100"))
    await place.store.workers.announce("w", ("CPU",), LEASE)
    assert await unserved(place.store, submission.id) == ()
    await place.judged(submission)
    assert await unserved(place.store, submission.id) == ("H100",)


async def test_what_has_ended_waits_for_nobody(place: Place) -> None:
    submission = await place.submit()
    await place.judged(submission)
    assert await unserved(place.store, submission.id) == ()


async def test_a_pinned_job_waits_for_a_worker_of_its_pool(place: Place) -> None:
    await place.store.boards.pin(place.board.id, (("CPU", "box"),))
    submission = await place.submit()
    offers = {"local_process": make_capabilities()}
    await place.store.workers.announce("worker-1", ("CPU",), LEASE, offers)
    assert await unserved(place.store, submission.id) == ("CPU",)
    assert await unserved_in_words(place.store, submission.id) == ("CPU of pool box",)
    await place.store.workers.announce("box:1", ("CPU",), LEASE, offers)
    assert await unserved_in_words(place.store, submission.id) == ()

"""Alerts for admins: each begins once, and ends when its cause is gone."""

from datetime import timedelta

from bot.domain.alerts import AlertMessage
from bot.domain.ids import PersonId, SubmissionId
from bot.services.alerts import SAME_AGAIN, STUCK_AFTER, update_alerts
from bot.services.similar import compare_sources
from runners.contract.runner import OutOfService
from tests.architecture.tree import ROOT
from tests.doubles.factories import make_capabilities
from tests.doubles.place import Place

CHANNEL, OWNER, LEASE = "discord-channel:5", "this process", timedelta(seconds=30)
LONG = (ROOT / "bot" / "domain" / "scoring.py").read_text(encoding="utf-8")
OTHER = (ROOT / "bot" / "domain" / "status.py").read_text(encoding="utf-8")


async def told(place: Place) -> list[AlertMessage]:
    """The messages that are due for the channel now."""
    found = await place.store.alerts.claim([CHANNEL], OWNER, LEASE)
    for each in found:
        assert await place.store.alerts.mark_sent(each, OWNER, "77")
    return [*found]


async def test_a_killed_worker_has_an_alert_until_it_is_back(
    place: Place,
) -> None:
    workers = place.store.workers
    for name in ("box", "polite"):
        await workers.announce(name, ["H100"], LEASE)
    await update_alerts(place.store, place.clock)
    assert await told(place) == []
    await workers.leave("polite")
    place.clock.advance(31)
    for _ in range(2):
        await update_alerts(place.store, place.clock)
    (begun,) = await told(place)
    assert begun.text == "Worker box (H100) does not answer"
    assert await told(place) == []
    await workers.announce("box", ["H100"], LEASE)
    await update_alerts(place.store, place.clock)
    (ended,) = await told(place)
    assert (ended.alert, ended.message) == (begun.alert, "77")
    assert ended.ended_at == place.clock.now()
    assert await told(place) == []


async def test_an_alert_that_begins_again_soon_keeps_its_message(place: Place) -> None:
    alerts = place.store.alerts
    await alerts.begin("k", "it broke", SAME_AGAIN)
    (first,) = await told(place)
    await alerts.end_except(())
    await told(place)
    place.clock.advance(60)
    await alerts.begin("k", "it broke", SAME_AGAIN)
    (again,) = await told(place)
    assert (again.alert, again.ended_at) == (first.alert, None)
    await alerts.end_except(())
    await told(place)
    place.clock.advance(SAME_AGAIN.total_seconds() + 1)
    await alerts.begin("k", "it broke", SAME_AGAIN)
    (later,) = await told(place)
    assert later.alert != first.alert


async def test_a_queue_is_stuck_if_nothing_runs_and_it_is_not_paused(place: Place) -> None:
    await place.submit()
    place.clock.advance(STUCK_AFTER.total_seconds() - 1)
    await update_alerts(place.store, place.clock)
    assert await told(place) == []
    place.clock.advance(1)
    await update_alerts(place.store, place.clock)
    (stuck,) = await told(place)
    assert stuck.text == "The queue of CPU is stuck: 1 job waiting and none running"
    await place.store.moderation.pause_gpu("CPU", "a new driver")
    await update_alerts(place.store, place.clock)
    (ended,) = await told(place)
    assert ended.ended_at is not None


async def test_an_alert_about_a_card_out_of_service_has_its_reason(place: Place) -> None:
    broken = OutOfService(gpu="H100", card="GPU-1", why="its clock is throttled")
    offer = make_capabilities(gpus={}, out_of_service=(broken,))
    await place.store.workers.announce("box", [], LEASE, {"local": offer})
    await update_alerts(place.store, place.clock)
    (found,) = await told(place)
    assert "H100 GPU-1 of worker box: its clock is throttled" in found.text


async def ran(place: Place, person: PersonId, source: str) -> SubmissionId:
    """A ranked run that passed."""
    submission = await place.submit(person, content=source.encode())
    await place.judged(submission)
    return submission.id


async def test_near_identical_sources_of_two_people_are_reported_once(place: Place) -> None:
    bob = await place.person("bob")
    first = await ran(place, place.ada, LONG)
    await ran(place, place.ada, LONG + "# mine, again\n")
    await compare_sources(place.store)
    assert await told(place) == []
    second = await ran(place, bob, LONG.replace("each", "entry"))
    await compare_sources(place.store)
    (found,) = await told(place)
    assert f"#{second} by bob (@local:bob) " in found.text  # two names may look alike
    assert f"#{first + 0}" not in found.text  # of ada's two, the newest is compared
    assert "near-identical sources; that does not mean that a rule was broken" in found.text
    await ran(place, bob, LONG.replace("each", "item"))
    await ran(place, await place.person("eve"), OTHER)
    await compare_sources(place.store)
    assert await told(place) == []


async def test_parts_of_the_tasks_own_files_do_not_make_sources_alike(place: Place) -> None:
    short = "def custom_kernel(data):\n    return data\n"
    for name in ("bob", "eve"):
        await ran(place, await place.person(name), short)
    await compare_sources(place.store)
    assert await told(place) == []

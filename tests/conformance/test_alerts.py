"""Alerts: at most one per key is active, and one process at a time holds each message."""

from dataclasses import replace
from datetime import timedelta

from bot.domain.alerts import RankedSource
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

HERE, THERE = "discord-channel:1", "discord-channel:2"
LEASE, SOON = timedelta(seconds=30), timedelta(minutes=15)


async def test_each_channel_gets_the_begin_and_the_end_of_an_alert(
    scene: Scene, clock: ManualClock
) -> None:
    alerts = scene.store.alerts
    for _ in range(2):
        await alerts.begin("k", "it broke", SOON)
    both = await alerts.claim([HERE, THERE], "a", LEASE)
    assert [(each.addressee, each.text, each.message) for each in both] == [
        (HERE, "it broke", None),
        (THERE, "it broke", None),
    ]
    assert await alerts.claim([HERE, THERE], "b", LEASE) == ()
    assert await alerts.mark_sent(both[0], "a", "7")
    assert not await alerts.mark_sent(both[1], "b", "8")
    assert await alerts.retry_later(both[1], "a", timedelta(seconds=5))
    assert await alerts.claim([HERE, THERE], "b", LEASE) == ()
    clock.advance(5)
    (again,) = await alerts.claim([HERE, THERE], "b", LEASE)
    assert (again.addressee, again.tries) == (THERE, 2)
    assert await alerts.mark_sent(again, "b", "8")
    assert await alerts.end_except(("k",)) == 0
    assert await alerts.end_except(()) == 1
    ended = await alerts.claim([HERE, THERE], "a", LEASE)
    assert [(each.message, each.ended_at) for each in ended] == [
        ("7", clock.now()),
        ("8", clock.now()),
    ]


async def test_an_alert_that_ended_before_its_message_was_sent_is_not_sent(scene: Scene) -> None:
    alerts = scene.store.alerts
    await alerts.begin("k", "it broke", SOON)
    await alerts.end_except(())
    assert await alerts.claim([HERE], "a", LEASE) == ()


async def test_an_alert_that_never_ends_is_reported_once(scene: Scene, clock: ManualClock) -> None:
    alerts = scene.store.alerts
    for _ in range(2):
        await alerts.report_once("pair", "alike")
    await alerts.end_except(())
    (found,) = await alerts.claim([HERE], "a", LEASE)
    assert (found.text, found.ended_at) == ("alike", None)
    clock.advance(3601)
    assert await alerts.claim([THERE], "a", LEASE) == ()


async def test_fingerprints_are_of_the_newest_source_of_each_other_person(scene: Scene) -> None:
    alerts = scene.store.alerts
    bob = await scene.store.people.ensure("local:bob", "bob")
    ones = [await scene.submit(), await scene.submit(), await scene.submit(bob)]
    of = [
        RankedSource(each.id, each.person, each.board, each.task_version, "unused") for each in ones
    ]
    for number, each in enumerate(of):
        await alerts.save_fingerprint(each, frozenset({number, -9}))
    found = await alerts.fingerprints_of_others(scene.board.id, bob.id, 2)
    assert found == ((replace(of[1], source=""), frozenset({1, -9})),)
    assert await alerts.fingerprints_of_others(scene.board.id, bob.id, 9) == ()
    assert await alerts.without_fingerprint() == ()


async def test_a_lost_worker_is_known_for_an_hour(scene: Scene, clock: ManualClock) -> None:
    workers = scene.store.workers
    await workers.announce("box", ["CPU"], LEASE)
    assert await workers.lost() == ()
    clock.advance(31)
    await workers.announce("other", ["CPU"], LEASE)
    assert [each.name for each in await workers.lost()] == ["box"]
    assert [each.name for each in await workers.alive()] == ["other"]
    clock.advance(3600)
    await workers.announce("other", ["CPU"], LEASE)
    assert await workers.lost() == ()

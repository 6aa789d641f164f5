"""What every store must do with rights."""

from datetime import timedelta

from bot.domain.accounts import Rights
from bot.domain.records import RightsGrant
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

GUILD, OTHER = "discord-guild:1", "discord-guild:2"


async def test_sources_add_up_and_each_replaces_what_it_said(scene: Scene) -> None:
    rights, ada = scene.store.rights, scene.ada.id
    bob = (await scene.store.people.ensure("local:bob", "Bob")).id
    assert await rights.of(ada) == Rights()
    await rights.replace(ada, GUILD, Rights(frozenset({"a", "b"}), is_admin=True))
    await rights.replace(ada, OTHER, Rights(frozenset({"c"}), is_creator=True))
    await rights.replace(bob, OTHER, Rights(frozenset({"d"})))
    both = Rights(frozenset({"a", "b", "c"}), is_admin=True, is_creator=True)
    assert await rights.of(ada) == both
    await rights.replace(ada, GUILD, Rights(frozenset({"b"})))
    assert await rights.of(ada) == Rights(frozenset({"b", "c"}), is_creator=True)
    assert await rights.remove(ada, OTHER)
    assert not await rights.remove(ada, OTHER)
    assert await rights.of(ada) == Rights(frozenset({"b"}))
    assert await rights.of(bob) == Rights(frozenset({"d"}))


async def test_what_was_not_said_for_long_is_stale_the_longest_first(
    scene: Scene, clock: ManualClock
) -> None:
    rights, ada, hour = scene.store.rights, scene.ada.id, timedelta(hours=1)
    for source in (OTHER, GUILD, "machine"):
        await rights.replace(ada, source, Rights())
        clock.advance(hour.total_seconds())
    assert await rights.stale("discord-guild", hour, 9) == (
        RightsGrant(ada, OTHER), RightsGrant(ada, GUILD),
    )  # fmt: skip
    assert await rights.stale("discord-guild", hour, 1) == (RightsGrant(ada, OTHER),)
    await rights.replace(ada, OTHER, Rights())
    assert await rights.stale("discord-guild", hour, 9) == (RightsGrant(ada, GUILD),)

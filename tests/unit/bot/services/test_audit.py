import pytest

from bot.domain.errors import UserError
from bot.services.audit import audit_page, audited, whole_audit
from tests.doubles.place import Place


async def test_decisions_come_in_pages_with_the_names_of_those_who_decided(place: Place) -> None:
    for number in range(3):
        await place.store.audit.record(place.ada, "limit", str(number), "crowded")
    await place.store.audit.record(None, "expire", "3", "")
    first = await audit_page(place.store, 0, 3)
    assert [(each.actor_name, each.entry.subject) for each in first.decisions] == [
        (None, "3"),
        ("ada", "2"),
        ("ada", "1"),
    ]
    assert first.more
    everything = await whole_audit(place.store)
    second = await audit_page(place.store, 1, 3)
    assert second.decisions == everything[3:6]
    assert not (await audit_page(place.store, 9, 3)).decisions
    exact = await audit_page(place.store, 0, len(everything))
    assert not exact.more


async def test_a_change_is_stored_with_its_entry(place: Place) -> None:
    async with audited(place.store, place.ada, "pause", "submissions", reason="full") as tx:
        await tx.moderation.pause("full")
    assert await place.store.moderation.pause_notice() == "full"
    newest = (await whole_audit(place.store))[0].entry
    assert (newest.actor, newest.action, newest.subject) == (place.ada, "pause", "submissions")
    assert newest.reason == "full"


async def test_a_change_that_is_refused_leaves_no_entry(place: Place) -> None:
    async def refused() -> None:
        async with audited(place.store, place.ada, "pause", "submissions") as tx:
            await tx.moderation.pause("full")
            raise UserError("test", "no")

    before = await whole_audit(place.store)
    with pytest.raises(UserError):
        await refused()
    assert await whole_audit(place.store) == before
    assert await place.store.moderation.pause_notice() is None

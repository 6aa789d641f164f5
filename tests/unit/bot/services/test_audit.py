from bot.services.audit import audit_page, whole_audit
from tests.doubles.place import Place


async def test_decisions_come_in_pages_with_the_names_of_those_who_decided(place: Place) -> None:
    for number in range(3):
        await place.store.audit.record(place.ada, "limit", str(number), "crowded")
    await place.store.audit.record(None, "expire", "3", "")
    first = await audit_page(place.store, 0, 3)
    assert [(each.actor_name, each.row.subject) for each in first.decisions] == [
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

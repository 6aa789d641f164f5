import pytest

from bot.domain.errors import UserError
from bot.services.tokens import (
    LINK_LIFETIME,
    SignInLinks,
    revoke_access,
    session_of,
    sign_in_by_link,
)
from tests.doubles.factories import NOON
from tests.doubles.place import Place

MINUTES_S = LINK_LIFETIME.total_seconds()


async def test_it_signs_the_person_of_the_machine_in_as_an_admin(place: Place) -> None:
    links = SignInLinks()
    key = links.key_for("ada", place.clock.now())
    made = await sign_in_by_link(place.store, place.clock, links, key, label="Firefox")
    session = await session_of(place.store, place.clock, made.secret)
    assert session is not None
    assert (session.person.id, session.caller.sees_all) == (place.ada, True)
    (noted,) = await place.store.audit.rows(1)
    assert (noted.action, noted.subject) == ("sign-in-link", "person local:ada")


async def test_it_is_good_once(place: Place) -> None:
    links = SignInLinks()
    key = links.key_for("ada", place.clock.now())
    await sign_in_by_link(place.store, place.clock, links, key, label="")
    with pytest.raises(UserError, match="already used") as refusal:
        await sign_in_by_link(place.store, place.clock, links, key, label="")
    assert refusal.value.code == "sign-in-refused"


async def test_it_lasts_ten_minutes_and_a_late_try_does_not_prolong_it(place: Place) -> None:
    links = SignInLinks()
    early, late = (links.key_for("ada", place.clock.now()) for _ in range(2))
    place.clock.advance(MINUTES_S - 1)
    await sign_in_by_link(place.store, place.clock, links, early, label="")
    place.clock.advance(1)
    for _ in range(2):
        with pytest.raises(UserError, match="older than ten minutes"):
            await sign_in_by_link(place.store, place.clock, links, late, label="")


@pytest.mark.parametrize("key", ["", "podium_once_guess", "x" * 100_000])
async def test_a_guess_lets_nobody_in_and_makes_no_account(place: Place, key: str) -> None:
    links = SignInLinks()
    links.key_for("eve", NOON)
    with pytest.raises(UserError, match="already used"):
        await sign_in_by_link(place.store, place.clock, links, key, label="")
    assert await place.store.people.find("local:eve") is None


async def test_it_ends_with_what_the_machine_gave(place: Place) -> None:
    links = SignInLinks()
    key = links.key_for("ada", place.clock.now())
    made = await sign_in_by_link(place.store, place.clock, links, key, label="")
    await revoke_access(place.store, place.ada, "ada")
    assert await session_of(place.store, place.clock, made.secret) is None


def test_no_key_is_kept_as_it_is() -> None:
    links = SignInLinks()
    assert links.key_for("ada", NOON) not in repr(links)

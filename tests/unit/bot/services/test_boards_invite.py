import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.services.boards import Invitation, invite, uninvite
from tests.doubles.place import Place

ROLE, PERSON = "discord-role:5", "discord:17"


def to(*guests: str, board: str = "vectoradd") -> Invitation:
    return Invitation(board, frozenset(guests))


async def test_guests_come_and_go_and_both_is_recorded(place: Place) -> None:
    ada = Viewer(place.ada)
    assert (await invite(place.store, ada, to(ROLE, PERSON))).access.guests == {ROLE, PERSON}
    assert (await uninvite(place.store, ada, to(ROLE))).access.guests == {PERSON}
    with pytest.raises(UserError, match="was invited"):
        await uninvite(place.store, ada, to(ROLE))
    rows = [(row.action, row.reason) for row in await place.store.audit.rows(2)]
    assert rows == [("uninvite", ROLE), ("invite", f"{ROLE}, {PERSON}")]


async def test_only_the_creator_and_admins_invite(place: Place) -> None:
    bob = await place.person("bob")
    with pytest.raises(UserError, match="another person"):
        await invite(place.store, Viewer(bob), to(PERSON))
    after = await invite(place.store, Viewer(bob, sees_all=True), to(PERSON))
    assert after.access.guests == {PERSON}


async def test_somebody_has_to_be_named(place: Place) -> None:
    with pytest.raises(UserError, match="at least one"):
        await invite(place.store, Viewer(place.ada), to())

"""Tests of invite links: a creator makes one, and people who have it join the private board."""

import re

import pytest

from bot.domain.board import Access, Visibility
from bot.services.audit import audit_rows
from bot.web.context import WebContext
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser, admin_of, signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

DAY_S = 86_400


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    made = await make_place(memory_store, clock)
    private = Access(visibility=Visibility.PRIVATE)
    await made.store.boards.restrict(made.board.id, private)
    return made


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


async def made_link(root: Browser, days: str = "7", most: str = "1") -> str:
    """The code of a new link, from the page that shows it once."""
    answer = await root.post("/edit/vectoradd/links", {"days": days, "most": most})
    assert answer.status_code == 200, answer.text
    code = re.search(r"/join\?code=([0-9a-f]{32})<", answer.text)
    assert code is not None
    assert code[1] not in await root.text("/edit/vectoradd")
    return code[1]


async def test_a_person_with_the_link_joins_after_signing_in(
    door: WebContext, place: Place
) -> None:
    root = await admin_of(door, "root")
    code = await made_link(root)
    stranger = Browser(door)
    asked = await stranger.get(f"/join?code={code}")
    assert asked.headers["Location"] == f"/sign-in?next=%2Fjoin%3Fcode%3D{code}"
    eve, _ = await signed_in(door, "eve")
    assert (await eve.get("/boards/vectoradd")).status_code == 404
    shown = await eve.text(f"/join?code={code}")
    assert "<strong>vectoradd</strong>" in shown
    assert (await eve.get("/boards/vectoradd")).status_code == 404  # only the button uses it
    joined = await eve.post("/join", {"code": code})
    assert joined.headers["Location"] == "/boards/vectoradd"
    assert (await eve.get("/boards/vectoradd")).status_code == 200
    bob, _ = await signed_in(door, "bob")
    refused = await bob.post("/join", {"code": code})
    assert refused.status_code == 400
    assert "used up" in refused.text
    assert "1 of 1 person joined" in await root.text("/edit/vectoradd")
    told = [each.entry for each in await audit_rows(door.store, 9, None)]
    assert ("join", "board vectoradd", "local:eve") in [
        (each.action, each.subject, each.reason) for each in told
    ]
    assert not [each for each in told if code in f"{each.subject}{each.reason}"]


async def test_a_link_has_limits_on_people_and_days(
    door: WebContext, place: Place, clock: ManualClock
) -> None:
    root = await admin_of(door, "root")
    for days, most in (("0", "1"), ("91", "1"), ("7", "0"), ("7", "1001"), ("x", "1")):
        answer = await root.post("/edit/vectoradd/links", {"days": days, "most": most})
        assert answer.status_code == 400
        assert "1 to 1,000 people and 1 to 90 days" in answer.text
    code = await made_link(root, days="1", most="20")
    clock.advance(DAY_S)
    eve, _ = await signed_in(door, "eve")
    assert (await eve.get(f"/join?code={code}")).status_code == 400
    assert (await eve.post("/join", {"code": code})).status_code == 400
    for junk in ("", "x" * 150, "\0", "<b>", code.upper()):
        answer = await eve.post("/join", {"code": junk})
        assert answer.status_code == 400
        assert "<b>" not in answer.text


async def test_a_revoked_link_invites_no_one_else(door: WebContext, place: Place) -> None:
    root = await admin_of(door, "root")
    code = await made_link(root, most="5")
    eve, _ = await signed_in(door, "eve")
    await eve.post("/join", {"code": code})
    (link,) = await place.store.invites.of(place.board.id)
    path = f"/edit/vectoradd/links/{link.id}/revoke"
    assert (await eve.post(path)).status_code == 403
    assert (await root.post(path)).headers["Location"] == "/edit/vectoradd?done=link-revoked"
    assert (await root.post(path)).status_code == 404
    assert (await eve.get("/boards/vectoradd")).status_code == 200
    bob, _ = await signed_in(door, "bob")
    assert (await bob.post("/join", {"code": code})).status_code == 400


async def test_only_the_board_s_creator_makes_links(door: WebContext) -> None:
    eve, _ = await signed_in(door, "eve")
    answer = await eve.post("/edit/vectoradd/links", {"days": "7", "most": "1"})
    assert answer.status_code == 403

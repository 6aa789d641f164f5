"""Tests of what no client of ours sends: numbers, names and headers made to break things."""

import pytest

from bot.domain.accounts import MACHINE, Rights
from bot.web.compat.evaluation_server.jobs import requests_board
from bot.web.context import WebContext
from bot.web.markup import MOST_NUMBERED
from bot.web.sessions import parse_number
from tests.doubles.agents import make_door
from tests.doubles.browsers import SAME_ORIGIN, signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

TOO_LARGE = ("1" + "0" * 5000, "0" * 30 + "1" + "0" * 5000, "000001" + "9" * 20, "9" * 20)
"""No number of a database, and of the first ones Python itself reads none."""


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


@pytest.mark.parametrize(
    ("text", "number"),
    [("17", 17), (" #17 ", 17), ("007", 7), ("3650", 3650), ("3651", None), ("0", None),
     ("-1", None), ("", None), ("1e3", None), ("\u0663", None), ("\u00b2", None)],
)  # fmt: skip
def test_a_number_is_read_within_its_bounds(text: str, number: int | None) -> None:
    assert parse_number(text, 3650) == number
    for large in TOO_LARGE:
        assert parse_number(large, 2**53) is None


async def test_a_number_of_any_length_is_refused_where_a_person_writes_one(
    door: WebContext, place: Place
) -> None:
    submission = await place.submit()
    browser, _ = await signed_in(door)
    for large in TOO_LARGE:
        made = await browser.post("/me/tokens", {"label": "x", "days": large})
        assert (made.status_code, "token lasts 1 to" in made.text) == (400, True)
        if len(large) <= 20:
            compared = await browser.get(f"/submissions/{submission.id}/compare?with={large}")
            assert (compared.status_code, "no submission 9" in compared.text) == (404, True)


async def test_a_guest_with_control_characters_is_nobody(door: WebContext, place: Place) -> None:
    await place.store.rights.replace(place.ada, MACHINE, Rights(is_creator=True))
    browser, _ = await signed_in(door)
    for guest in ("local:a\0b", "local:a\x1b[31mb", "local:a\x85b"):
        refused = await browser.post("/edit/vectoradd/invite", {"guests": guest})
        assert (refused.status_code, "cannot be invited" in refused.text) == (400, True)
    board = await place.store.boards.find("vectoradd")
    assert board is not None
    assert not board.access.guests


async def test_a_request_to_the_evaluation_server_leads_to_no_board(
    door: WebContext, place: Place
) -> None:
    number = (await place.asked()).id
    name = (await requests_board(place.store)).name
    browser, _ = await signed_in(door)
    for path in (f"/submissions/{number}", f"/submit/{number}", f"/people/{place.ada}", "/me"):
        page = await browser.text(path)
        assert (name in page) is path.endswith(f"/{number}")
        assert 'href="/boards//' not in page


async def test_a_long_form_is_read_as_multipart_and_as_nothing_else(
    door: WebContext, place: Place
) -> None:
    await place.store.rights.replace(place.ada, MACHINE, Rights(is_creator=True))
    browser, _ = await signed_in(door)
    source = "x = 1\r\n" * 100_000
    for path in ("/submit", "/submit/look", "/create", "/create/look", "/edit/vectoradd/task"):
        refused = await browser.post(path, {"source": source})
        assert refused.status_code == 413, path
        assert "must be multipart/form-data; send it as that" in refused.text
    pasted = {"stamp": await browser.stamp(), "board": "vectoradd", "source": source}
    parts = {name: (None, value) for name, value in pasted.items()}
    taken = await browser.client.post("/submit", files=parts, headers=SAME_ORIGIN)
    assert taken.status_code == 303, taken.text


async def test_no_form_is_read_of_who_may_not_send_it(door: WebContext) -> None:
    browser, _ = await signed_in(door, "eve")
    kind = {"Content-Type": "multipart/form-data"}  # without a boundary nobody can read it
    for path in ("/create", "/create/look", "/edit/vectoradd/look", "/edit/vectoradd/task"):
        refused = await browser.client.post(path, content=b"x", headers=SAME_ORIGIN | kind)
        assert refused.status_code == 403, path
        assert "do not have the right to create boards" in refused.text


async def test_a_page_of_three_hundred_thousand_lines_has_few_elements(
    door: WebContext, place: Place
) -> None:
    browser, _ = await signed_in(door)
    file = ("file", "kernel.py", b"# \n" * 300_000)
    taken = await browser.post("/submit", {"board": "vectoradd"}, file=file)
    number = taken.headers["Location"].rpartition("/")[2]
    page = await browser.text(f"/submissions/{number}")
    assert page.count('<span id="line-') == MOST_NUMBERED
    assert page.count("# \n") >= 300_000

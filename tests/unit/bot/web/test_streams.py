"""Tests of who goes on watching: an answer that takes long ends with the right to it."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from bot.domain.api.base import PATH
from bot.domain.board import Access, Visibility
from bot.domain.submission import Submission
from bot.services.tokens import create_token, revoke_token, sessions_of, sign_out
from bot.web import rendering
from bot.web.context import WebContext
from tests.doubles.agents import make_door, way_to
from tests.doubles.browsers import signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place


@pytest.fixture
async def place(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Place:
    monkeypatch.setattr(rendering, "TICK_S", 0.01)
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


async def told(
    place: Place,
    submission: Submission,
    asking: Awaitable[httpx.Response],
    meanwhile: Callable[[], Awaitable[object]],
) -> str:
    """The whole answer to somebody from whom the right is taken before the submission is judged."""
    watching = asyncio.ensure_future(asking)
    await asyncio.sleep(0.05)
    await meanwhile()
    await place.judged(submission)
    answer = await asyncio.wait_for(watching, 5)
    assert answer.status_code == 200
    return answer.text


async def test_a_token_that_is_revoked_is_told_nothing_more(place: Place, door: WebContext) -> None:
    submission = await place.submit()
    made = await create_token(place.store, place.ada, "laptop")
    headers = {"Authorization": f"Bearer {made.secret}"}
    async with httpx.AsyncClient(transport=way_to(door), base_url="http://podium.test") as client:
        asking = client.get(f"{PATH}/submissions/{submission.id}/events", headers=headers)
        text = await told(
            place, submission, asking, lambda: revoke_token(place.store, place.ada, made.token.id)
        )
    assert "queued" in text
    assert "succeeded" not in text
    assert "event: end" not in text


@pytest.mark.parametrize("path", [f"{PATH}/submissions", "/submissions"])
async def test_a_guest_who_may_not_see_the_board_any_more_is_told_nothing_more(
    place: Place, door: WebContext, path: str
) -> None:
    submission = await place.submit()
    board = await place.store.boards.find("vectoradd")
    assert board is not None
    await place.store.boards.restrict(board.id, Access(Visibility.PRIVATE))
    await place.store.boards.invite(board.id, frozenset({"local:bob"}))
    browser, _ = await signed_in(door, "bob")
    asking = browser.get(f"{path}/{submission.id}/events")
    text = await told(
        place,
        submission,
        asking,
        lambda: place.store.boards.uninvite(board.id, frozenset({"local:bob"})),
    )
    assert "queued" in text
    assert "succeeded" not in text
    assert "passed" not in text


@pytest.mark.parametrize("path", ["/submissions", "/submit"])
async def test_a_browser_that_is_signed_out_is_told_nothing_more(
    place: Place, door: WebContext, path: str
) -> None:
    submission = await place.submit()
    browser, made = await signed_in(door)
    person = made.token.person
    (session,) = await sessions_of(place.store, place.clock, person)
    asking = browser.get(f"{path}/{submission.id}/events")
    text = await told(place, submission, asking, lambda: sign_out(place.store, person, session.id))
    assert "queued" in text
    assert "passed" not in text

"""Tests of who looks: by a person's token, or anybody."""

from collections.abc import Awaitable, Callable

import pytest
from fastapi import Request

from bot.domain.accounts import ANYBODY, Caller, Rights, TokenScope
from bot.domain.board import NOBODY
from bot.domain.errors import UserError
from bot.services.tokens import create_token, revoke_token, sign_in_by_token
from bot.web.auth import administrator, creator, person_of, submitter, viewer_of
from bot.web.context import WebContext
from tests.doubles.agents import make_door, make_token
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore


class _Application:
    def __init__(self, door: WebContext) -> None:
        self.state = self
        self.context = door


def request_with(door: WebContext, **headers: str) -> Request:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": pairs, "app": _Application(door)})


async def test_the_person_of_a_token_looks_until_it_is_revoked(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    made = await create_token(memory_store, ada.id, "laptop")
    asked = request_with(make_door(memory_store, clock), Authorization=f"Bearer {made.secret}")

    found = await person_of(await viewer_of(asked))
    assert found == Caller(ada.id, frozenset({"local:ada"}), scope=TokenScope.PERSON)

    await revoke_token(memory_store, ada.id, made.token.id)
    with pytest.raises(UserError, match="revoked"):
        await viewer_of(asked)


async def test_without_a_token_anybody_looks_and_nobody_acts(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    viewer = await viewer_of(request_with(make_door(memory_store, clock)))
    assert (viewer.person, viewer.credentials) == (NOBODY, frozenset())
    with pytest.raises(UserError, match="needs a token"):
        await person_of(viewer)


async def test_a_workers_token_is_no_persons(memory_store: MemoryStore, clock: ManualClock) -> None:
    secret = await make_token(memory_store, clock)
    asked = request_with(make_door(memory_store, clock), Authorization=f"Bearer {secret}")
    with pytest.raises(UserError, match="unknown"):
        await viewer_of(asked)


async def test_each_scope_of_an_admins_tokens_lets_do_so_much_and_no_more(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    await memory_store.rights.replace(ada.id, "machine", Rights(is_admin=True))
    doors = (person_of, submitter, creator, administrator)
    found: dict[TokenScope, list[bool]] = {}
    for scope in (TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN):
        made = await create_token(memory_store, ada.id, "x", scope=scope)
        asked = request_with(make_door(memory_store, clock), Authorization=f"Bearer {made.secret}")
        found[scope] = [await _lets(each, await viewer_of(asked)) for each in doors]
    assert found == {
        TokenScope.READ: [True, False, False, False],
        TokenScope.PERSON: [True, True, True, False],
        TokenScope.ADMIN: [True, True, True, True],
    }
    assert [await _lets(each, Caller(NOBODY)) for each in doors] == [False] * 4


async def test_who_has_no_right_gets_none_by_a_token(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    made = await create_token(memory_store, ada.id, "x")
    asked = request_with(make_door(memory_store, clock), Authorization=f"Bearer {made.secret}")
    asks = await viewer_of(asked)
    assert [await _lets(each, asks) for each in (submitter, creator, administrator)] == [
        True, False, False,
    ]  # fmt: skip


async def _lets(door: Callable[[Caller], Awaitable[Caller]], asks: Caller) -> bool:
    try:
        return await door(asks) == asks
    except UserError as error:
        assert error.code in {"bad-token", "narrow-token", "not-allowed"}  # noqa: PT017 - which one
        return False


async def test_a_browser_that_is_signed_in_reads_and_does_not_act(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    made = await create_token(memory_store, ada.id, "laptop")
    session = await sign_in_by_token(memory_store, clock, made.secret, "Firefox")
    asked = request_with(make_door(memory_store, clock), Cookie=f"podium={session.secret}")
    asked.scope.update(method="GET", scheme="http", path="/", server=("podium.test", 80))
    assert (await viewer_of(asked)).person == ada.id
    asked.scope["method"] = "POST"
    assert await viewer_of(asked) == ANYBODY

"""Tests of cookies and stamps: whose request it is, and from where."""

import pytest
from fastapi import Request, Response

from bot.domain.errors import UserError
from bot.services.tokens import create_token, sign_in_by_token
from bot.web.context import WebContext
from bot.web.sessions import (
    browser_of,
    cookie_name,
    local_path,
    require_same_origin,
    require_stamp,
    set_cookie,
)
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore


class _Application:
    def __init__(self, door: WebContext) -> None:
        self.state = self
        self.context = door


def asked(door: WebContext, scheme: str = "http", **headers: str) -> Request:
    pairs = [(n.lower().replace("_", "-").encode(), v.encode()) for n, v in headers.items()]
    scope = {"type": "http", "headers": pairs, "app": _Application(door), "scheme": scheme}
    return Request({**scope, "path": "/", "query_string": b"", "server": ("podium.test", 80)})


@pytest.fixture
def door(memory_store: MemoryStore, clock: ManualClock) -> WebContext:
    return make_door(memory_store, clock)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("/submit?leaderboard=a", "/submit?leaderboard=a"),
        ("/", "/"),
        (None, "/"),
        ("", "/"),
        ("submit", "/"),
        ("//evil.example/x", "/"),
        ("/\\evil.example", "/"),
        ("/a\\b", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/\tx", "/"),
        ("/\r\nSet-Cookie: a=b", "/"),
        ("/\u2028", "/"),
        ("/sign-out", "/"),
        ("/sign-in", "/"),
        ("/" + "a" * 1_400, "/"),
    ],
)
def test_after_a_sign_in_nobody_is_led_elsewhere(wanted: str | None, there: str) -> None:
    assert local_path(wanted) == there


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "same-origin"}, {"Origin": "http://podium.test"}]
)
def test_a_page_of_ours_may_act(door: WebContext, headers: dict[str, str]) -> None:
    ours = asked(door, Host="podium.test", **headers)
    require_same_origin(ours)
    assert ours.headers["host"] == "podium.test"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "http://podium.test"},
        {"Sec_Fetch_Site": "none"},
        {"Origin": "http://podium.test.evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://[::1"},
        {},
    ],
)
def test_no_other_page_may(door: WebContext, headers: dict[str, str]) -> None:
    with pytest.raises(UserError, match="not from a page of Podium"):
        require_same_origin(asked(door, Host="podium.test", **headers))


async def test_a_cookie_is_out_of_reach_of_scripts_and_of_plain_http(
    door: WebContext, memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    token = await create_token(memory_store, ada.id, "x")
    made = await sign_in_by_token(memory_store, clock, token.secret, "x")
    plain, safe = asked(door), asked(door, scheme="https")
    written = []
    for request in (plain, safe):
        answer = Response()
        set_cookie(request, answer, made)
        written.append(answer.headers["Set-Cookie"])
    assert all("HttpOnly" in each and "SameSite=lax" in each for each in written)
    assert [("Secure" in each) for each in written] == [False, True]
    assert (cookie_name(plain), cookie_name(safe)) == ("podium", "__Host-podium")

    browser = await browser_of(asked(door, Cookie=f"podium={made.secret}"))
    assert browser is not None
    assert browser.session.person == ada
    assert made.secret not in browser.stamp
    assert await browser_of(asked(door, "https", Cookie=f"podium={made.secret}")) is None
    assert await browser_of(asked(door, Cookie=f"podium={token.secret}")) is None
    require_stamp(browser, browser.stamp)
    for wrong in ("", "\u00e9", browser.stamp[:-1], made.secret):
        with pytest.raises(UserError, match="earlier sign-in"):
            require_stamp(browser, wrong)

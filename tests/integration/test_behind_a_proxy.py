"""The door behind a reverse proxy that speaks HTTPS: cookies, forms, addresses, whom to trust."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest

from bot.services.tokens import create_token
from bot.web.app import serving
from bot.web.context import HttpSettings, WebContext
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.tls_proxy import CERTIFICATE, tls_proxy

KNOWN = ("127.0.0.0/8",)


@asynccontextmanager
async def at(
    door: WebContext, proxies: tuple[str, ...], host: str | None = None, *, told: bool = False
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at the proxy; the door is `told` its public address, or is not."""
    public = None if host is None else "https://podium.example.org"
    fronted = replace(door, public_url=public if told else None)
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    async with (
        serving(fronted, HttpSettings("127.0.0.1", 0, proxies=proxies)) as url,
        tls_proxy(urlsplit(url).port or 0, host) as address,
        httpx.AsyncClient(
            base_url=address, verify=context, headers={"Accept": "text/html"}
        ) as browser,
    ):
        yield browser


@pytest.fixture
async def secret(memory_store: MemoryStore) -> str:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    return (await create_token(memory_store, ada.id, "laptop")).secret


@pytest.mark.parametrize(
    ("proxies", "host", "told"),
    [
        (KNOWN, None, False),
        ((), "127.0.0.1:8000", True),  # as nginx does unless it is told to pass the name on
        (KNOWN, "podium.example.org", True),
    ],
)
async def test_people_sign_in_and_act_through_a_proxy_that_speaks_https(
    memory_store: MemoryStore,
    clock: ManualClock,
    secret: str,
    *,
    proxies: tuple[str, ...],
    host: str | None,
    told: bool,
) -> None:
    door = make_door(memory_store, clock)
    async with at(door, proxies, host, told=told) as browser:
        home = "https://podium.example.org" if told else str(browser.base_url).rstrip("/")
        old = {"Origin": home}  # of a browser that does not send Sec-Fetch-Site
        form = {"token": secret, "next": "/me"}
        answer = await browser.post("/sign-in", data=form, headers=old)
        cookie = answer.headers["Set-Cookie"]
        assert (answer.status_code, answer.headers["Location"]) == (303, "/me")
        assert cookie.startswith("__Host-podium=")
        assert "; Secure" in cookie
        page = (await browser.get("/me")).text
        assert "Ada" in page
        stamp = page.partition('name="stamp" value="')[2].partition('"')[0]
        foreign = await browser.post(
            "/sign-out", data={"stamp": stamp}, headers={"Origin": "https://evil.example.org"}
        )
        assert foreign.status_code == 403
        out = await browser.post("/sign-out", data={"stamp": stamp}, headers=old)
        assert out.status_code == 303
        assert "Ada" not in (await browser.get("/")).text


async def test_no_answer_leads_from_https_to_plain_http(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    door = make_door(memory_store, clock)
    for proxies in (KNOWN, ()):
        async with at(door, proxies) as browser:
            for path in ("/queue/", "/boards/x/", "/me", "/api/v1/leaderboards/", "/eval/stats/"):
                there = (await browser.get(path)).headers.get("Location", "")
                assert not there.startswith("http:"), path


async def test_behind_a_proxy_nobody_is_a_program_of_this_machine(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    """Also where the proxy leaves no mark on what it carries, and a stranger names this machine."""
    door = make_door(memory_store, clock)
    fronted = replace(door, public_url="https://podium.example.org")
    for there, proxies in ((door, KNOWN), (fronted, ())):
        settings = HttpSettings("127.0.0.1", 0, proxies=proxies)
        async with (
            serving(there, settings) as url,
            httpx.AsyncClient(base_url=url, headers={"Host": "localhost"}) as stranger,
        ):
            assert (await stranger.get("/eval/stats")).status_code == 401


async def test_a_door_to_both_kinds_of_addresses_knows_its_proxy_by_either(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    door = replace(make_door(memory_store, clock), requests_per_minute=1)
    async with serving(door, HttpSettings("::", 0, proxies=KNOWN)) as url:
        here = f"http://127.0.0.1:{urlsplit(url).port}"
        async with httpx.AsyncClient(base_url=here) as proxy:
            for who, status in (("192.0.2.1", 200), ("192.0.2.2", 200), ("192.0.2.1", 429)):
                answer = await proxy.get("/api/v1/queue", headers={"X-Forwarded-For": who})
                assert answer.status_code == status

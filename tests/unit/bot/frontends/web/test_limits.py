from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.domain.agent import PATH as AGENTS
from bot.domain.api.wire import PATH
from bot.frontends.web.limits import (
    KNOWN,
    POPCORN,
    POPCORN_TOKEN,
    WINDOW_S,
    Limiter,
    RateLimits,
)


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Knows one token."""
    sent = dict(scope["headers"]).get(b"authorization", b"")
    status = 401 if sent not in {b"", b"Bearer good"} else 200
    scope.setdefault("state", {})[KNOWN] = sent == b"Bearer good"
    await Response(status_code=status)(scope, receive, send)


@asynccontextmanager
async def asking(limiter: Limiter, host: str = "10.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    way = httpx.ASGITransport(RateLimits(application, limiter), client=(host, 1))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        yield client


def test_all_may_be_spent_at_once_and_come_back_one_by_one() -> None:
    watch = Watch()
    limiter = Limiter(6, watch)
    assert [limiter.count("a").left for _ in range(6)] == [5, 4, 3, 2, 1, 0]
    spent = limiter.allowance("a")
    assert spent.next_s == pytest.approx(10)
    assert spent.reset_s == pytest.approx(WINDOW_S)
    assert limiter.allowance("b").left == 6
    watch.now += 9.9
    assert limiter.allowance("a").left == 0
    watch.now += 0.2
    assert limiter.allowance("a").left == 1
    watch.now += WINDOW_S
    assert limiter.allowance("a").left == 6


async def test_each_answer_says_what_is_left_and_a_refusal_when_to_come_again() -> None:
    watch = Watch()
    async with asking(Limiter(2, watch)) as client:
        left = [(await client.get(f"{PATH}/me")).headers["ratelimit-remaining"] for _ in range(2)]
        refused = await client.get(f"{PATH}/me")
        watch.now += 30
        again = await client.get(f"{PATH}/me")
    assert left == ["1", "0"]
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
    assert refused.headers["retry-after"] == "30"
    assert refused.headers["ratelimit-limit"] == "2"
    assert refused.headers["ratelimit-reset"] == "60"
    assert again.status_code == 200


async def test_a_token_has_its_own_and_agents_none() -> None:
    good = {"Authorization": "Bearer good"}
    async with asking(Limiter(1, Watch())) as client:
        assert (await client.get(f"{PATH}/me")).status_code == 200
        assert (await client.get(f"{PATH}/me")).status_code == 429
        for path in (f"{AGENTS}/x/claim", "/healthz"):
            answers = [await client.get(path) for _ in range(3)]
            assert {each.status_code for each in answers} == {200}
            assert "ratelimit-limit" not in answers[0].headers
    async with asking(Limiter(1, Watch()), "10.0.0.2") as client:
        assert (await client.get(f"{PATH}/me", headers=good)).status_code == 200
        assert (await client.get(f"{PATH}/me", headers=good)).status_code == 429


@pytest.mark.parametrize(
    ("path", "header", "other"),
    [
        (f"{POPCORN}/leaderboards", POPCORN_TOKEN, "Authorization"),
        (f"{PATH}/me", "Authorization", POPCORN_TOKEN),
    ],
)
async def test_a_token_counts_where_it_is_looked_at_and_no_other_header_hides_it(
    path: str, header: str, other: str
) -> None:
    good = "Bearer good"
    async with asking(Limiter(1, Watch())) as client:
        found = [
            (await client.get(path, headers={header: good, other: more})).status_code
            for more in ("", good, "Bearer more")
        ]
    assert found == [200, 429, 429]


async def test_nobody_tries_many_tokens() -> None:
    async with asking(Limiter(3, Watch())) as client:
        guesses = [{"Authorization": f"Bearer {number}"} for number in range(5)]
        found = [(await client.get(f"{PATH}/me", headers=each)).status_code for each in guesses]
    assert found == [401, 401, 401, 429, 429]


async def test_a_good_token_is_not_kept_out_by_a_neighbour_without_one() -> None:
    async with asking(Limiter(2, Watch())) as client:
        spent = [(await client.get(f"{PATH}/me")).status_code for _ in range(3)]
        good = await client.get(f"{PATH}/me", headers={"Authorization": "Bearer good"})
    assert (spent, good.status_code) == ([200, 200, 429], 200)


async def test_a_network_of_ipv6_is_one_address() -> None:
    limiter = Limiter(1, Watch())
    found = []
    for host in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
        async with asking(limiter, host) as client:
            found.append((await client.get(f"{PATH}/me")).status_code)
    assert found == [200, 429, 200]


async def test_addresses_of_ipv4_are_told_apart_also_where_they_are_written_as_ipv6() -> None:
    limiter = Limiter(1, Watch())
    found = []
    for host in ("::ffff:192.0.2.1", "::ffff:192.0.2.2", "192.0.2.1"):
        async with asking(limiter, host) as client:
            found.append((await client.get(f"{PATH}/me")).status_code)
    assert found == [200, 200, 429]


def test_a_flood_of_strangers_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.frontends.web.limits._MOST_KEYS", 10)
    watch = Watch()
    limiter = Limiter(60, watch)
    for number in range(100):
        limiter.count(str(number))
        watch.now += 0.2
    assert len(limiter._spent_until) <= 10
    assert limiter.allowance("99").left == 59


async def test_requests_of_the_evaluation_server_are_limited_too() -> None:
    async with asking(Limiter(1, Watch())) as client:
        assert (await client.post("/eval/evaluate")).status_code == 200
        assert (await client.get("/eval/job/1")).status_code == 429

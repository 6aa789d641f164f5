import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.accounts import Token, TokenScope, digest_of
from bot.domain.api.base import PATH
from bot.domain.api.workers import PATH as AGENTS
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId, TokenId
from bot.web.limits import POPCORN, POPCORN_TOKEN, WINDOW_S, Limiter, RateLimits


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def live(scope: TokenScope) -> Token:
    return Token(TokenId(1), PersonId(1), "test", datetime(2026, 1, 1, tzinfo=UTC), None, scope)


TOKENS = {
    digest_of("good"): live(TokenScope.PERSON),
    digest_of("better"): live(TokenScope.PERSON),
    digest_of("worker"): live(TokenScope.WORKER),
    digest_of("session"): live(TokenScope.SESSION),
}
GOOD = {"Authorization": "Bearer good"}


async def find(digest: str) -> Token | None:
    return TOKENS.get(digest)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    await Response()(scope, receive, send)


@asynccontextmanager
async def asking(
    limiter: Limiter, host: str = "10.0.0.1", app: ASGIApp = application
) -> AsyncIterator[httpx.AsyncClient]:
    way = httpx.ASGITransport(RateLimits(app, limiter, find), client=(host, 1))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        yield client


async def statuses(
    client: httpx.AsyncClient, count: int, headers: Mapping[str, str], path: str = f"{PATH}/me"
) -> list[int]:
    return [(await client.get(path, headers=headers)).status_code for _ in range(count)]


def test_all_may_be_spent_at_once_and_come_back_one_by_one() -> None:
    watch = Watch()
    limiter = Limiter(6, watch)
    assert [limiter.count("a").left for _ in range(6)] == [5, 4, 3, 2, 1, 0]
    spent = limiter.status_of("a")
    assert spent.next_s == pytest.approx(10)
    assert spent.reset_s == pytest.approx(WINDOW_S)
    assert limiter.status_of("b").left == 6
    watch.now += 9.9
    assert limiter.status_of("a").left == 0
    watch.now += 0.2
    assert limiter.status_of("a").left == 1
    watch.now += WINDOW_S
    assert limiter.status_of("a").left == 6


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


@pytest.mark.parametrize(
    "path", [f"{PATH}/me", f"{AGENTS}/x/claim", "/", "/queue", "/queue/events", "/boards/a", "/a",
             "/readyz", "/metrics", "/popcorn/leaderboards", "/eval/evaluate", "/sign-in"],
)  # fmt: skip
async def test_every_path_is_limited_and_a_token_has_its_own(path: str) -> None:
    async with asking(Limiter(1, Watch())) as client:
        assert await statuses(client, 2, {}, path) == [200, 429]
        assert await statuses(client, 2, GOOD, path) == [200, 429]
    async with asking(Limiter(1, Watch()), "10.0.0.2") as client:
        assert await statuses(client, 2, {}, path) == [200, 429]


@pytest.mark.parametrize("path", ["/healthz", "/static/0123/podium.css"])
async def test_what_costs_nothing_has_no_limit(path: str) -> None:
    async with asking(Limiter(1, Watch())) as client:
        answers = [await client.get(path) for _ in range(3)]
    assert {each.status_code for each in answers} == {200}
    assert "ratelimit-limit" not in answers[0].headers


async def test_a_worker_has_ten_times_as_much() -> None:
    async with asking(Limiter(1, Watch())) as client:
        found = await statuses(client, 11, {"Authorization": "Bearer worker"}, f"{AGENTS}/x/beat")
    assert found == [200] * 10 + [429]


async def test_a_browser_counts_for_its_session() -> None:
    async with asking(Limiter(1, Watch())) as client:
        for name in ("podium", "__Host-podium"):
            found = await statuses(client, 2, {"Cookie": f"a=b; {name}=session"}, "/")
            assert 429 in found
        assert await statuses(client, 1, {}, "/") == [200]


@pytest.mark.parametrize(
    "written",
    ["Bearer  good", "bearer good", "BEARER good ", "Bearer good\t", "Basic Omdvb2Q=",
     "basic YW55Omdvb2Q="],
)  # fmt: skip
async def test_a_token_is_one_token_however_it_is_written(written: str) -> None:
    async with asking(Limiter(2, Watch())) as client:
        assert await statuses(client, 1, GOOD) == [200]
        assert await statuses(client, 2, {"Authorization": written}) == [200, 429]


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
    async with asking(Limiter(1, Watch())) as client:
        found = [
            (await client.get(path, headers={header: "Bearer good", other: more})).status_code
            if header == "Authorization"
            else (await client.get(path, headers={header: "good", other: more})).status_code
            for more in ("", "better", "Bearer better")
        ]
    assert found == [200, 429, 429]


async def test_nobody_tries_many_tokens_and_spaces_make_no_new_ones() -> None:
    async with asking(Limiter(3, Watch())) as client:
        guesses = [{"Authorization": f"Bearer {' ' * number}x"} for number in range(3)]
        guesses += [{"Authorization": f"Bearer {number}"} for number in range(3)]
        found = [(await client.get(f"{PATH}/me", headers=each)).status_code for each in guesses]
    assert found == [200, 200, 200, 429, 429, 429]


async def test_a_token_that_cannot_be_read_is_counted_like_any_unknown_one() -> None:
    async with asking(Limiter(1, Watch())) as stranger:
        answers = [
            (await stranger.get("/", headers=[(b"Authorization", b"Basic " + value)])).status_code
            for value in (b"\xff\xff", b"!!", b"/w==")
        ]
    assert answers == [200, 429, 429]


async def test_seven_hundred_tokens_that_are_none_keep_no_neighbour_out() -> None:
    limiter = Limiter(600, Watch())
    async with asking(limiter) as client:
        for number in range(700):
            await client.get(f"{PATH}/me", headers={"Authorization": f"Bearer {number}"})
        assert await statuses(client, 2, {"Authorization": "Bearer none"}) == [429, 429]
        assert await statuses(client, 2, GOOD) == [200, 200]
        assert await statuses(client, 2, {}) == [200, 200]


async def test_a_token_is_looked_up_once_a_minute_and_counts_for_nobody_once_it_has_ended() -> None:
    watch, looked_up, tokens = Watch(), [], dict(TOKENS)

    async def counted(digest: str) -> Token | None:
        looked_up.append(digest)
        return tokens.get(digest)

    way = httpx.ASGITransport(RateLimits(application, Limiter(3, watch), counted))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        assert await statuses(client, 2, GOOD) == [200, 200]
        assert len(looked_up) == 1
        tokens.clear()
        watch.now += 61
        left = (await client.get(f"{PATH}/me", headers=GOOD)).headers["ratelimit-remaining"]
        await client.get(f"{PATH}/me", headers={"Authorization": "Bearer another"})
        again = (await client.get(f"{PATH}/me", headers=GOOD)).headers["ratelimit-remaining"]
    assert (left, again) == ("2", "0"), "both were guesses of this address"


async def test_while_the_database_is_away_those_who_were_known_stay_known() -> None:
    watch, away = Watch(), False

    async def sometimes(digest: str) -> Token | None:
        if away:
            raise StoreError("away")
        return TOKENS.get(digest)

    way = httpx.ASGITransport(RateLimits(application, Limiter(1, watch), sometimes))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        assert await statuses(client, 1, GOOD) == [200]
        away = True
        watch.now += 61
        assert await statuses(client, 2, {"Authorization": "Bearer better"}) == [200, 429]
        assert await statuses(client, 1, GOOD) == [200]


async def test_only_so_many_are_under_way_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.web.limits.AT_ONCE", 2)
    begun, ended = asyncio.Semaphore(0), asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        await ended.wait()
        await application(scope, receive, send)

    async with asking(Limiter(600, Watch()), app=stream) as client:
        watching = [asyncio.create_task(client.get("/queue/events")) for _ in range(2)]
        await begun.acquire()
        await begun.acquire()
        refused = await client.get("/queue/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "wait for some to end" in refused.json()["detail"]
        other = asyncio.create_task(client.get("/queue/events", headers=GOOD))
        await begun.acquire()
        ended.set()
        answers = [await each for each in (*watching, other)]
        assert {each.status_code for each in answers} == {200}
        assert (await client.get("/queue/events")).status_code == 200


async def test_a_browser_is_refused_by_a_page() -> None:
    async with asking(Limiter(1, Watch())) as client:
        answers = [await client.get("/", headers={"Accept": "text/html"}) for _ in range(2)]
    assert answers[1].status_code == 429
    assert answers[1].headers["content-type"].startswith("text/html")
    assert answers[1].headers["retry-after"] == "60"
    assert "too many requests" in answers[1].text


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
    monkeypatch.setattr("bot.web.limits._MOST_KEYS", 10)
    watch = Watch()
    limiter = Limiter(60, watch)
    for number in range(100):
        limiter.count(str(number))
        watch.now += 0.2
    assert len(limiter._spent_until) <= 10
    assert limiter.status_of("99").left == 59

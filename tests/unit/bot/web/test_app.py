"""Tests of the whole application without a network: what comes in, and what is answered."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
import structlog.testing

from bot.domain.api.workers import BODY_MAX, HARNESS_HEADER, PATH
from bot.domain.errors import StoreError
from bot.ports.outside import ServiceConnection
from bot.services.parser_process import ParserProcess
from bot.web.routes import system, workers
from runners.contract.evaluation import CPU
from runners.contract.task import Mode
from tests.doubles.agents import HARNESS, SESSION, make_door, make_token, way_to
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_evaluation
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

AGENT = f"{PATH}/{SESSION}"


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
async def token(place: Place) -> str:
    return await make_token(place.store, place.clock)


async def asked(
    place: Place,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - httpx's own
) -> httpx.Response:
    """The answer of a fresh application, as after a restart of the server."""
    way = way_to(make_door(place.store, place.clock))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        return await client.request(method, path, headers=headers, **options)


def bearing(token: str, harness: str = HARNESS) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", HARNESS_HEADER: harness}


async def test_the_process_says_that_it_answers(place: Place) -> None:
    answer = await asked(place, "GET", "/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/nothing", "/boards", "/openapi.json"])
async def test_a_path_that_is_none_is_a_problem_with_words(place: Place, path: str) -> None:
    answer = await asked(place, "GET", path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not-found"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer  ", "Basic abc", "Bearer nope"])
async def test_without_a_workers_token_nothing_is_told(place: Place, header: str) -> None:
    for method, path in (("POST", "claim"), ("GET", "jobs/1/1/request"), ("POST", "log")):
        headers = {"Authorization": header, HARNESS_HEADER: HARNESS}
        answer = await asked(place, method, f"{AGENT}/{path}", headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "bad-token")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_an_expired_token_is_refused(place: Place, token: str) -> None:
    assert (await asked(place, "POST", f"{AGENT}/hello", bearing(token))).status_code == 200
    place.clock.advance(timedelta(days=1).total_seconds())
    answer = await asked(place, "POST", f"{AGENT}/hello", bearing(token))
    assert answer.status_code == 401


@pytest.mark.parametrize("version", ["1.2.2", "", "x" * 5000])
async def test_another_harness_is_refused_with_the_command_that_mends_it(
    place: Place, token: str, version: str
) -> None:
    answer = await asked(place, "POST", f"{AGENT}/hello", bearing(token, version))
    assert (answer.status_code, answer.json()["code"]) == (409, "harness-version")
    assert "pip install --upgrade 'kernel-podium==9.8.7'" in answer.json()["detail"]
    assert len(answer.content) < 1000


@pytest.mark.parametrize("session", ["x", "ABCDEFAB", "0" * 33, "..%2f..%2fhello"])
async def test_a_session_that_is_none_is_refused(place: Place, token: str, session: str) -> None:
    answer = await asked(place, "POST", f"{PATH}/{session}/hello", bearing(token))
    assert answer.status_code in {404, 422}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"slots": {}}',
        b'{"slots": {"CPU": 0}}',
        b'{"slots": {"CPU": 1e9}}',
        b'{"slots": {"CPU": "1"}}',
        b'{"slots": {"a b": 1}}',
        b'{"slots": {"CPU": 1}, "more": 1}',
    ],
)
async def test_a_body_that_does_not_fit_is_refused_with_what_was_wrong(
    place: Place, token: str, body: bytes
) -> None:
    answer = await asked(place, "POST", f"{AGENT}/claim", bearing(token), content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-body")
    assert "a JSON object with `slots`, " in answer.json()["detail"]


async def test_a_body_that_is_too_long_is_refused(place: Place, token: str) -> None:
    body = b" " * (BODY_MAX + 1)
    answer = await asked(place, "POST", f"{AGENT}/claim", bearing(token), content=body)
    assert (answer.status_code, answer.json()["code"]) == (413, "large-body")


async def test_what_is_answered_may_not_be_kept_on_the_way(place: Place, token: str) -> None:
    await place.submit()
    claimed = await asked(place, "POST", f"{AGENT}/claim", bearing(token), json={"slots": {CPU: 1}})
    (job,) = claimed.json()["jobs"]
    assert "person" not in job
    path = f"{AGENT}/jobs/{job['id']}/{job['fence']}/request"
    order = await asked(place, "GET", path, bearing(token))
    assert order.json()["nonce"]
    assert order.headers["cache-control"] == "no-store"


async def test_a_late_evaluation_is_a_conflict_and_the_same_again_is_none(
    place: Place, token: str
) -> None:
    await place.submit()
    claimed = await asked(place, "POST", f"{AGENT}/claim", bearing(token), json={"slots": {CPU: 1}})
    (job,) = claimed.json()["jobs"]
    path = f"{AGENT}/jobs/{job['id']}/{job['fence']}/evaluation"
    evaluation = make_evaluation(mode=Mode(job["mode"]), request_id=f"job-{job['id']}")
    body = evaluation.model_dump_json()
    elsewhere = path.replace(SESSION, "f" * 8)
    late = await asked(place, "POST", elsewhere, bearing(token), content=body)
    assert (late.status_code, late.json()["code"]) == (409, "lease-lost")
    for _ in range(2):  # the second as if the first answer had been lost on its way
        answer = await asked(place, "POST", path, bearing(token), content=body)
        assert (answer.status_code, answer.content) == (204, b"")


async def test_an_answer_to_another_order_is_refused(place: Place, token: str) -> None:
    await place.submit()
    claimed = await asked(place, "POST", f"{AGENT}/claim", bearing(token), json={"slots": {CPU: 1}})
    (job,) = claimed.json()["jobs"]
    path = f"{AGENT}/jobs/{job['id']}/{job['fence']}/evaluation"
    body = make_evaluation(mode=Mode(job["mode"])).model_dump_json()
    answer = await asked(place, "POST", path, bearing(token), content=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "no-answer")


@pytest.mark.parametrize(
    "place_of", ["jobs/x/1", "jobs/-1/1", f"jobs/{1 << 63}/1", f"jobs/1/{1 << 63}"]
)
async def test_a_job_that_cannot_be_is_refused(place: Place, token: str, place_of: str) -> None:
    answer = await asked(place, "GET", f"{AGENT}/{place_of}/request", bearing(token))
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-request")


async def test_a_bug_is_an_incident_without_its_words(
    place: Place, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError("password=hunter2")

    monkeypatch.setattr(place.store.jobs, "claim", broken)
    with structlog.testing.capture_logs() as logged:
        answer = await asked(
            place, "POST", f"{AGENT}/claim", bearing(token), json={"slots": {CPU: 1}}
        )
    assert [entry["action"] for entry in logged] == ["incident", "request"]
    assert (answer.status_code, answer.json()["code"]) == (500, "incident")
    assert "hunter2" not in answer.text


async def test_who_waits_for_notices_waits_no_longer_than_asked(place: Place, token: str) -> None:
    query = {"gpu": [CPU], "wait_s": 0.05}
    answer = await asked(place, "GET", f"{AGENT}/notices", bearing(token), params=query)
    assert answer.json() == {"notices": []}
    for wrong in ({"gpu": [CPU], "wait_s": 3600}, {"wait_s": 1}, {"gpu": "a b"}):
        answer = await asked(place, "GET", f"{AGENT}/notices", bearing(token), params=wrong)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad-request")


async def test_readiness_names_the_part_that_does_not_work(place: Place) -> None:
    door = replace(
        make_door(place.store, place.clock),
        has_runners=True,
        connections=(ServiceConnection("discord"),),
    )
    async with httpx.AsyncClient(transport=way_to(door), base_url="http://podium.test") as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["not_ready"] == ["judging", "discord"]
        assert "dispatcher" in answer.json()["parts"]["judging"]["detail"]
        passed_over = await client.get("/readyz?exclude=discord&exclude=judging")
        assert (passed_over.status_code, passed_over.json()["not_ready"]) == (200, [])


async def test_a_working_podium_is_ready_and_measured(place: Place) -> None:
    await place.submit()
    await place.store.workers.announce("w", [CPU], timedelta(seconds=30))
    assert (await asked(place, "GET", "/readyz")).json()["status"] == "ready"
    answer = await asked(place, "GET", "/metrics")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert 'podium_jobs{gpu="CPU",state="queued"} 1.0' in answer.text


async def test_a_database_that_is_away_is_told_to_whoever_watches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing() -> None:
        raise StoreError("no route to 10.0.0.5")

    monkeypatch.setattr(place.store.operations, "schema", nothing)
    monkeypatch.setattr(place.store.operations, "tallies", nothing)
    ready, measured = [await asked(place, "GET", path) for path in ("/readyz", "/metrics")]
    assert (ready.status_code, ready.json()["not_ready"]) == (503, ["database"])
    assert (measured.status_code, "podium_database_up 0.0" in measured.text) == (200, True)
    assert "10.0.0.5" not in ready.text + measured.text


async def test_a_database_that_says_nothing_is_told_in_time_and_logged(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(0.2)  # as a driver does that wants to tell its server of it first

    monkeypatch.setattr(system, "WITHIN_S", 0.01)
    monkeypatch.setattr(place.store.operations, "schema", silent)
    with structlog.testing.capture_logs() as logged:
        ready = await asyncio.wait_for(asked(place, "GET", "/readyz"), 5)
    assert (ready.status_code, ready.json()["not_ready"]) == (503, ["database"])
    assert [each["error"] for each in logged if each["action"] == "not-ready"] == [
        "the database: no answer within 0.01 s"
    ]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/v1/leaderboards", "GET, HEAD, POST"),
        ("/api/v1/leaderboards/vectoradd", "GET, HEAD, PATCH, DELETE"),
        ("/api/v1/submissions", "GET, HEAD, POST"),
        ("/sign-out", "POST"),
        ("/", "GET, HEAD"),
    ],
)
async def test_a_method_that_is_not_there_is_told_all_that_are(
    place: Place, path: str, allowed: str
) -> None:
    way = way_to(make_door(place.store, place.clock))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        answer = await client.request("TRACE", path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


async def test_an_evaluation_of_a_million_faults_holds_nobody_up(
    place: Place, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "EVALUATIONS", ParserProcess(0.6, 60))
    text = b'{"cases": [' + b"{}," * 1_000_000 + b"{}]}"
    headers = {"Authorization": f"Bearer {token}", HARNESS_HEADER: HARNESS}
    way, turns = way_to(make_door(place.store, place.clock)), 0
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        path = f"{PATH}/{SESSION}/jobs/1/1/evaluation"
        asking = asyncio.create_task(client.post(path, content=text, headers=headers))
        while not asking.done():
            await asyncio.sleep(0.01)
            turns += 1
    assert ((await asking).status_code, (await asking).json()["code"]) == (400, "too-hard")
    assert turns > 10

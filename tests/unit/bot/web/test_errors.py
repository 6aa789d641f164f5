import json
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from bot.domain.errors import SetupError, StoreError, UserError
from bot.web.errors import error_response
from runners.contract.runner import RunnerError
from tests.doubles.agents import make_door, way_to
from tests.doubles.clock import ManualClock
from tests.doubles.factories import NOON
from tests.doubles.memory_store import MemoryStore

REQUEST = Request({"type": "http"})


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UserError("bad-zip", "it is none"), 400, "bad-zip"),
        (UserError("closed", "it is closed"), 409, "closed"),
        (UserError("rate-limit", "later"), 429, "rate-limit"),
        (UserError("bad-token", "it is none"), 401, "bad-token"),
        (UserError("not-yours", "it is another's"), 403, "not-yours"),
        (UserError("unknown-board", "there is none"), 404, "unknown-board"),
        (UserError("lease-lost", "it is another's"), 409, "lease-lost"),
        (StoreError("away"), 503, "away"),
        (SetupError("away"), 503, "away"),
        (RunnerError("away"), 503, "away"),
        (HTTPException(405, headers={"Allow": "GET"}), 405, "method-not-allowed"),
        (
            RequestValidationError([{"loc": ("q",), "msg": "wrong", "type": "x"}]),
            422,
            "bad-request",
        ),
        (KeyError("x"), 500, "incident"),
    ],
)
async def test_every_family_is_a_problem_of_its_own(
    error: Exception, status: int, code: str
) -> None:
    answer = await error_response(REQUEST, error)
    told = json.loads(bytes(answer.body))
    assert (answer.status_code, told["status"], told["code"]) == (status, status, code)
    assert list(told) == ["title", "status", "code", "detail"]
    assert answer.media_type == "application/problem+json"


async def test_a_person_s_error_is_told_in_its_own_words_and_ours_is_not() -> None:
    told = json.loads(bytes((await error_response(REQUEST, UserError("x", "do this"))).body))
    assert told["detail"] == "do this"
    answer = await error_response(REQUEST, StoreError("postgres at 10.0.0.1 is away"))
    assert b"10.0.0.1" not in bytes(answer.body)
    assert answer.headers["retry-after"] == "2"


async def test_a_limit_that_knows_its_end_says_after_how_many_seconds_it_lifts() -> None:
    app = FastAPI()
    app.state.context = make_door(MemoryStore(ManualClock()), ManualClock())
    request = Request({"type": "http", "app": app})
    moments = {"soon": NOON + timedelta(seconds=90.2)}
    for code, told in (("rate-limit", "91"), ("hidden-source", None)):
        answer = await error_response(request, UserError(code, "soon", moments))
        assert answer.headers.get("retry-after") == told


@pytest.mark.parametrize(
    ("asked", "led"),
    [
        ("/queue/?a=1&b=%20", "/queue?a=1&b=%20"),
        ("//queue//", "/queue"),
        ("//queue", None),
        ("/popcorn", "/popcorn/"),
        ("/api/v1/queue/", "/api/v1/queue"),
        ("/queue/%0d%0ax/", None),
        ("//evil.example.org/", None),
        ("/nothing/", None),
    ],
)
async def test_an_address_with_a_slash_at_its_end_leads_to_the_one_without(
    asked: str, led: str | None
) -> None:
    way = way_to(make_door(MemoryStore(ManualClock()), ManualClock()))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        answer = await client.request("GET", httpx.URL("http://podium.test").copy_with(
            raw_path=asked.encode()
        ), headers={"Host": "evil.example.org"})  # fmt: skip
    assert (answer.status_code, answer.headers.get("Location")) == (307 if led else 404, led)

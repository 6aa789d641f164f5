import json

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from bot.domain.errors import SetupError, StoreError, UserError
from bot.frontends.web.failures import answer_to
from runners.contract.runner import RunnerError

REQUEST = Request({"type": "http"})


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UserError("closed", "it is closed"), 400, "closed"),
        (UserError("bad-token", "it is none"), 401, "bad-token"),
        (UserError("lease-lost", "it is another's"), 409, "lease-lost"),
        (StoreError("away"), 503, "away"),
        (SetupError("away"), 503, "away"),
        (RunnerError("away"), 503, "away"),
        (HTTPException(405, headers={"Allow": "GET"}), 405, "method-not-allowed"),
        (RequestValidationError([{"loc": ("q",), "msg": "wrong"}]), 422, "bad-request"),
        (KeyError("x"), 500, "incident"),
    ],
)
async def test_every_family_is_a_problem_of_its_own(
    error: Exception, status: int, code: str
) -> None:
    answer = await answer_to(REQUEST, error)
    told = json.loads(bytes(answer.body))
    assert (answer.status_code, told["status"], told["code"]) == (status, status, code)
    assert list(told) == ["title", "status", "code", "detail"]
    assert answer.media_type == "application/problem+json"


async def test_a_person_s_error_is_told_in_its_own_words_and_ours_is_not() -> None:
    told = json.loads(bytes((await answer_to(REQUEST, UserError("x", "do this"))).body))
    assert told["detail"] == "do this"
    answer = await answer_to(REQUEST, StoreError("postgres at 10.0.0.1 is away"))
    assert b"10.0.0.1" not in bytes(answer.body)
    assert answer.headers["retry-after"] == "2"

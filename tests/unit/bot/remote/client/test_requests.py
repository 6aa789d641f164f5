"""Tests of a person's requests, and of every way in which they fail."""

import ssl
from collections.abc import Callable

import httpx
import pytest

from bot.domain.api.accounts import Me
from bot.domain.errors import SetupError, UserError
from bot.remote import http
from bot.remote.client.requests import OutcomeUnknownError, open_client
from bot.remote.http import Server

ADA = {
    "id": 1, "identity": "local:ada", "name": "Ada", "scope": "submit", "is_admin": False,
    "is_creator": False, "credentials": [],
}  # fmt: skip

Answering = Callable[[httpx.Request], httpx.Response]


def problem(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": "words"})


async def asked(answer: Answering | httpx.Response, token: str = "secret", deed: str = "") -> Me:  # noqa: S107
    answering = answer if callable(answer) else lambda _: answer
    server = Server("https://podium.test", token)
    async with open_client(server, httpx.MockTransport(answering)) as requests:
        if deed:
            return await requests.post(deed, Me, {"a": 1})
        return await requests.get("me", Me)


async def test_a_request_has_the_token_and_a_later_servers_keys_do_no_harm() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={**ADA, "karma": 5})

    assert (await asked(answer)).name == "Ada"
    assert str(seen[0].url) == "https://podium.test/api/v1/me"
    assert seen[0].headers["authorization"] == "Bearer secret"
    await asked(answer, token="")
    assert "authorization" not in seen[1].headers


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (problem(401, "bad-token"), "bad-token", "refuses the token: words; then: podium login"),
        (problem(403, "narrow-token"), "narrow-token", "^words$"),
        (problem(404, "unknown-board"), "unknown-board", "^words$"),
        (problem(404, "not-found"), "old-server", "older than this one"),
        (problem(405, "method-not-allowed"), "old-server", "older than this one"),
        (problem(429, "too-many-requests"), "too-many-requests", "words"),
        (httpx.Response(429, text="slow down"), "too-many-requests", "Too Many"),
        (httpx.Response(404, text="<html>"), "no-podium", "is not a Podium server"),
        (httpx.Response(307, headers={"Location": "https://x.test"}), "redirected", "redirects to"),
        (httpx.Response(200, text="<html>"), "other-version", "does not understand"),
        (httpx.Response(200, json={"id": 1}), "other-version", "does not understand"),
    ],
)
async def test_what_the_person_can_change_is_said(
    answer: httpx.Response, code: str, words: str
) -> None:
    with pytest.raises(UserError, match=words) as refused:
        await asked(answer)
    assert refused.value.code == code


async def test_who_has_no_token_is_asked_to_sign_in() -> None:
    with pytest.raises(UserError, match=r"podium login https://podium\.test") as refused:
        await asked(problem(401, "bad-token"), token="")
    assert refused.value.code == "no-token"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (problem(500, "incident"), r"^https://podium\.test: words$"),
        (problem(503, "away"), r"^https://podium\.test: words$"),
        (httpx.Response(502, text="<html>"), "is unavailable: 502 Bad Gateway; check the address"),
    ],
)
async def test_a_server_that_is_away_is_nobodys_doing_here(
    answer: httpx.Response, words: str
) -> None:
    with pytest.raises(SetupError, match=words):
        await asked(answer)


async def test_a_deed_whose_answer_is_lost_may_have_been_done() -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset", request=request)

    def unreached(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(OutcomeUnknownError, match="reset; check the address") as unsure:
        await asked(lost, deed="submissions")
    assert unsure.value.lost == "no answer from https://podium.test: reset"
    with pytest.raises(SetupError, match="refused; check the address") as certain:
        await asked(unreached, deed="submissions")
    assert not isinstance(certain.value, OutcomeUnknownError)


async def test_a_certificate_that_is_not_trusted_is_said_with_the_way_out() -> None:
    def untrusted(request: httpx.Request) -> httpx.Response:
        try:
            error = ssl.SSLCertVerificationError(1, "certificate verify failed")
            error.verify_message = "self-signed certificate"
            raise error
        except ssl.SSLError as cause:
            raise httpx.ConnectError("[SSL] verify failed", request=request) from cause

    with pytest.raises(SetupError, match=r"trusted \(self-signed certificate\).*SSL_CERT_FILE"):
        await asked(untrusted)


async def test_a_server_without_https_is_said() -> None:
    def plain(request: httpx.Request) -> httpx.Response:
        error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
        error.reason = "WRONG_VERSION_NUMBER"
        raise httpx.ConnectError("wrong version number", request=request) from error

    with pytest.raises(SetupError, match="does not use HTTPS there"):
        await asked(plain)


async def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "RESPONSE_MAX", 1000)
    with pytest.raises(SetupError, match="longer than 1000 bytes"):
        await asked(httpx.Response(200, content=b"x" * 2000))
    with pytest.raises(SetupError, match="longer than 1000 bytes"):
        await asked(httpx.Response(400, content=b"x" * 2000))

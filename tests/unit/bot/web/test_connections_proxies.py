import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from bot.web.connections import Proxies
from bot.web.middleware import REQUEST_ID, RequestIds


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope)
    told = [request.client.host if request.client else None, request.url.scheme]
    await JSONResponse(told)(scope, receive, send)


@pytest.mark.parametrize(
    ("proxies", "peer", "believed"),
    [
        ((), "127.0.0.1", False),
        (("127.0.0.0/8",), "127.0.0.1", True),
        (("127.0.0.0/8",), "::ffff:127.0.0.1", True),
        (("127.0.0.0/8",), "192.0.2.9", False),
        (("2001:db8::/32",), "2001:db8::1", True),
        (("127.0.0.1",), "nonsense", False),
    ],
)
async def test_only_a_known_proxy_says_who_asks_and_gives_ids(
    proxies: tuple[str, ...],
    peer: str,
    believed: bool,  # noqa: FBT001
) -> None:
    way = httpx.ASGITransport(Proxies(RequestIds(application), proxies), client=(peer, 1))
    sent = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", REQUEST_ID: "abc-1"}
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        answer = await client.get("/", headers=sent)
    assert (answer.headers[REQUEST_ID] == "abc-1") == believed
    assert answer.json() == (["192.0.2.1", "https"] if believed else [peer, "http"])

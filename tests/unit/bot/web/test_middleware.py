import httpx
import pytest
from starlette.responses import RedirectResponse
from starlette.types import Receive, Scope, Send

from bot.web.middleware import RelativeRedirects


@pytest.mark.parametrize(
    ("there", "led"),
    [
        ("http://podium.test/queue?a=1&b=%20", "/queue?a=1&b=%20"),
        ("http://podium.test//evil.example.org/x", "/evil.example.org/x"),
        ("http://podium.test", "/"),
        ("/me", "/me"),
        ("https://discord.com/oauth2?x=podium.test", "https://discord.com/oauth2?x=podium.test"),
    ],
)
async def test_only_our_own_address_is_left_out(there: str, led: str) -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await RedirectResponse(there)(scope, receive, send)

    way = httpx.ASGITransport(RelativeRedirects(application))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        assert (await client.get("/")).headers["Location"] == led

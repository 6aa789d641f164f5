"""What the proxies before the door say of a request, and nobody else: who asks, how, and its id."""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from bot.web.request_ids import HEADER


class Proxies:
    """The application, which believes these addresses and networks alone."""

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = app
        self._known = [ip_network(each) for each in proxies]
        spelled = [word for each in proxies for word in _spellings(each)]
        self._told = ProxyHeadersMiddleware(app, spelled)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._is_known(scope):
            await self._told(scope, receive, send)  # type: ignore[arg-type]
            return
        name = HEADER.lower().encode()
        headers = [each for each in scope.get("headers", ()) if each[0].lower() != name]
        await self._app({**scope, "headers": headers}, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        try:
            address = ip_address((scope.get("client") or ("", 0))[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._known)


def _spellings(proxy: str) -> tuple[str, str]:
    """An address or network as it is, and as a door to IPv4 and IPv6 alike sees it."""
    network = ip_network(proxy)
    if network.version == 6:
        return proxy, proxy
    return proxy, f"::ffff:{network.network_address}/{96 + network.prefixlen}"

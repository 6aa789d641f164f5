"""A reverse proxy for Podium: it accepts HTTPS and forwards the client's address and scheme."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tests.architecture.tree import ROOT

TLS = ROOT / "tests" / "doubles" / "tls"
CERTIFICATE = TLS / "certificate.pem"


@dataclass(frozen=True, slots=True)
class _Proxy:
    """Forwards one request per connection to the port; `host` replaces the header `Host`."""

    there: int
    host: str | None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in
                       (line.partition(":") for line in lines)}  # fmt: skip
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            headers |= self._own(writer)
            answers, there = await asyncio.open_connection("127.0.0.1", self.there)
            text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            there.write(f"{request}\r\n{text}\r\n".encode("latin-1") + body)
            while piece := await answers.read(1 << 16):
                writer.write(piece)
                await writer.drain()
            there.close()
        writer.close()

    def _own(self, writer: asyncio.StreamWriter) -> dict[str, str]:
        """The headers that it sends instead of the browser's."""
        said = {
            "connection": "close",
            "x-forwarded-for": writer.get_extra_info("peername")[0],
            "x-forwarded-proto": "https",
        }
        return said if self.host is None else said | {"host": self.host}


@asynccontextmanager
async def tls_proxy(there: int, host: str | None = None) -> AsyncIterator[str]:
    """The address of a proxy for this port; its clients must trust `CERTIFICATE`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, TLS / "key.pem")
    proxy = _Proxy(there, host)
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}"

"""One websocket of the gateway, with its compression."""

import asyncio
import contextlib
import json
import zlib
from collections.abc import Callable
from importlib import import_module

from aiohttp import WSMsgType, web

from tests.doubles.discord.wire import Json

DISPATCH = 0
Compress = Callable[[bytes], bytes]


def _zlib() -> Compress:
    stream = zlib.compressobj()
    return lambda raw: stream.compress(raw) + stream.flush(zlib.Z_SYNC_FLUSH)


def _zstd() -> Compress:
    """Requested only by clients that have `zstandard`, which is then installed here too."""
    library = import_module("zstandard")
    stream, block = library.ZstdCompressor().compressobj(), library.COMPRESSOBJ_FLUSH_BLOCK

    def compress(raw: bytes) -> bytes:
        return bytes(stream.compress(raw) + stream.flush(block))

    return compress


_COMPRESSIONS: dict[str | None, Callable[[], Compress]] = {
    "zlib-stream": _zlib,
    "zstd-stream": _zstd,
}


class Socket:
    """Sends in order; its methods return at once, so a slow client delays nothing else."""

    def __init__(self, websocket: web.WebSocketResponse, request: web.Request) -> None:
        self._websocket, self._transport = websocket, request.transport
        self.code: int | None = None
        """The code with which the server closed the connection."""
        begin = _COMPRESSIONS.get(request.query.get("compress"))
        self._compress = begin() if begin else None
        self._waiting: asyncio.Queue[Json | int] = asyncio.Queue()
        self._pump = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            while True:
                item = await self._waiting.get()
                if isinstance(item, int):
                    await self._websocket.close(code=item)
                    return
                text = json.dumps(item)
                if self._compress:
                    await self._websocket.send_bytes(self._compress(text.encode()))
                else:
                    await self._websocket.send_str(text)

    async def receive(self, within: float) -> str | bytes | None:
        """Return what the client sent, or None once it has closed."""
        message = await asyncio.wait_for(self._websocket.receive(), within)
        data: str | bytes = message.data
        return data if message.type in (WSMsgType.TEXT, WSMsgType.BINARY) else None

    def event(self, name: str, data: Json, sequence: int) -> None:
        self._waiting.put_nowait({"op": DISPATCH, "d": data, "t": name, "s": sequence})

    def send(self, op: int, data: Json | bool | None = None) -> None:  # noqa: FBT001 -- a payload
        self._waiting.put_nowait({"op": op, "d": data, "t": None, "s": None})

    def close(self, code: int) -> None:
        self.code = code
        self._waiting.put_nowait(code)

    def cut(self) -> None:
        """Break the connection without a close frame."""
        if self._transport:
            self._transport.abort()

    @property
    def client_left(self) -> bool:
        """Whether the client closed the connection with a code that ends its session."""
        return self.code is None and self._websocket.close_code in (1000, 1001)

    async def finish(self) -> None:
        if self.code is None and not self._websocket.closed:
            await self._websocket.close()
        if self.code is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._pump, 1)
        self._pump.cancel()

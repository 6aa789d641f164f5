"""Arguments and results that are too large for a message, over HTTP."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from modal_proto import api_pb2

_LARGEST = 1 << 30


class Blobs:
    """A store of bytes with upload and download addresses."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._made = 0
        self._address = ""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serve them on loopback inside the block."""
        app = web.Application(client_max_size=_LARGEST)
        app.add_routes([web.put("/b", self._put), web.get("/b", self._get)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._address = f"http://127.0.0.1:{runner.addresses[0][1]}/b"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _put(self, request: web.Request) -> web.Response:
        self._kept[request.query["id"]] = data = await request.read()
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return web.Response(headers={"ETag": f'"{digest}"'})

    async def _get(self, request: web.Request) -> web.Response:
        return web.Response(body=self._kept[request.query["id"]])

    def create(self) -> api_pb2.BlobCreateResponse:
        """A new blob and its upload address."""
        self._made += 1
        name = f"bl-{self._made}"
        answer = api_pb2.BlobCreateResponse(blob_ids=[name])
        answer.upload_urls.items.append(f"{self._address}?id={name}")
        return answer

    def get(self, name: str) -> api_pb2.BlobGetResponse:
        """The download address of a blob."""
        return api_pb2.BlobGetResponse(download_url=f"{self._address}?id={name}")

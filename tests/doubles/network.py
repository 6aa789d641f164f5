"""A network connection that can be cut: what is sent meanwhile arrives later, as with TCP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Network:
    """Forwards bytes to one port unless it is cut; neither side gets an error from a cut."""

    def __init__(self, port: int) -> None:
        self._there = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.carried = 0

    def cut(self) -> None:
        """Stop forwarding."""
        self._whole.clear()

    def mend(self) -> None:
        """Forward again, beginning with what was held back."""
        self._whole.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions until either side closes it."""
        with suppress(OSError):
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._there)
            ways = {
                asyncio.create_task(self._pump(reader, there_writer)),
                asyncio.create_task(self._pump(there_reader, writer)),
            }
            self._pumps |= ways
            await asyncio.wait(ways)
            self._pumps -= ways

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while piece := await reader.read(1 << 16):
                    await self._whole.wait()
                    self.carried += len(piece)
                    writer.write(piece)
                    await writer.drain()
                await self._whole.wait()
        finally:
            writer.close()

    async def aclose(self) -> None:
        """Close every connection."""
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(set(self._pumps))


@asynccontextmanager
async def network_to(port: int) -> AsyncIterator[tuple[Network, int]]:
    """A network to this port of this machine, and the port on which it listens."""
    network = Network(port)
    async with await asyncio.start_server(network.connect, "127.0.0.1", 0) as server:
        yield network, server.sockets[0].getsockname()[1]
        server.close()
        await network.aclose()

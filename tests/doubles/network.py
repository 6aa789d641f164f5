"""A stretch of network that can be cut: what is sent meanwhile arrives late, as TCP has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Network:
    """Carries bytes to one port, unless it is cut; nobody is told that it is."""

    def __init__(self, port: int) -> None:
        self._there = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.carried = 0

    def cut(self) -> None:
        """Carry nothing from here on."""
        self._whole.clear()

    def mend(self) -> None:
        """Carry everything, and what has waited first."""
        self._whole.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, both ways, until either side ends it."""
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
        """Break every connection."""
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(set(self._pumps))


@asynccontextmanager
async def network_to(port: int) -> AsyncIterator[tuple[Network, int]]:
    """A network to this port of this machine, and the port at which it begins."""
    network = Network(port)
    async with await asyncio.start_server(network.connect, "127.0.0.1", 0) as server:
        yield network, server.sockets[0].getsockname()[1]
        server.close()
        await network.aclose()

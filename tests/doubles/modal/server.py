"""A local Modal on loopback; an unmodified client deploys apps to it and calls them."""

import shutil
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.doubles.modal.rpcs import ClientService
from tests.doubles.modal.scheduler import Scheduler

REPOSITORY = Path(__file__).resolve().parents[3]


class LocalModal:
    """The local Modal: `async with LocalModal() as server`; clients need `server.environment`."""

    def __init__(self, python_path: Iterable[Path] = (REPOSITORY,)) -> None:
        self._python_path = tuple(str(each) for each in python_path)
        self._stack = AsyncExitStack()
        self.url = ""

    async def __aenter__(self) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="modal-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.rpcs = ClientService(folder, self._python_path)
        self.scheduler: Scheduler = self.rpcs.scheduler
        await self._stack.enter_async_context(self.scheduler.blobs.served())
        server = self.rpcs.server()
        await server.start("127.0.0.1", 0)
        self._stack.push_async_callback(server.wait_closed)
        self._stack.callback(server.close)
        self._stack.push_async_callback(self.scheduler.aclose)
        sockets = server._server.sockets  # type: ignore[union-attr]  # it has begun
        self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which a client connects to this server only."""
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": "ak-local",
            "MODAL_TOKEN_SECRET": "as-local",
            "MODAL_CONFIG_PATH": "/nonexistent",
        }

    def lose_machine(self) -> None:
        """Kill a container that has an input, like a lost machine; LookupError if none has one."""
        running = self.scheduler.running
        if not running:
            raise LookupError("no container has an input")
        running[0].kill()

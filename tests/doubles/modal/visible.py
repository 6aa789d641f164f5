"""A local Modal that this process and its children take for Modal."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

import modal

from tests.doubles.modal.server import LocalModal


@asynccontextmanager
async def local_modal() -> AsyncIterator[LocalModal]:
    """Serve one until left; the client of this process is closed before it ends."""
    async with LocalModal() as server:
        with patch.dict(os.environ, server.environment):
            try:
                yield server
            finally:
                await (await modal.Client.from_env.aio()).close.aio()

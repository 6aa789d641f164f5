"""A local Modal to which clients in this process and its children connect."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

import modal

from tests.doubles.modal.server import LocalModal


@asynccontextmanager
async def local_modal() -> AsyncIterator[LocalModal]:
    """Run one inside the block; this process's client is closed before the server stops."""
    async with LocalModal() as server:
        with patch.dict(os.environ, server.environment):
            try:
                yield server
            finally:
                await (await modal.Client.from_env.aio()).close.aio()

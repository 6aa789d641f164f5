"""Judges for a Podium elsewhere, as `podium worker --server` does."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from bot.app import runners as places
from bot.app.context import Elsewhere
from bot.app.logs import log_to
from bot.domain.agent import Greeting
from bot.domain.errors import SetupError, StoreError
from bot.remote.address import server
from bot.services.dispatch import DispatchConfig, Dispatcher
from bot.settings import Settings
from bot.store.clock import SystemClock
from runners.contract.runner import Runner

if TYPE_CHECKING:
    from bot.remote.connection import Connection

POLL_S = 5.0
"""Between claims that no notice asked for: a notice may be lost on its way."""
PROGRESS_S = 1.0
"""Between two steps of one stage that the server is told of."""


@asynccontextmanager
async def working_for(
    elsewhere: Elsewhere,
    runners: Sequence[Runner],
    settings: Settings,
    copy: Callable[[str], None] | None = None,
) -> AsyncIterator[str]:
    """Works through a server's queue until left, then drains; gives the name that it has there.

    `copy` is handed each line of the log.

    SetupError when the server cannot be reached at first, UserError when it refuses, then or later;
    RunnerError when a runner cannot say what it offers.
    """
    from bot.remote.log import LogUpload  # noqa: PLC0415 - httpx: only agents wait for it
    from bot.remote.queue import RemoteQueue  # noqa: PLC0415 - the same

    async with _greeted(elsewhere, settings) as (connection, greeting):
        upload = LogUpload(connection)
        hidden = (*settings.secrets, *([elsewhere.token] if elsewhere.token else ()))
        log_to(
            settings.data_dir / "podium.log", _both(upload.put, copy), hidden, settings.log_level
        )
        config = _config(greeting, runners)
        dispatcher = Dispatcher(
            RemoteQueue(connection, config.lease), runners, SystemClock(), config
        )
        stop, drained = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            working = group.create_task(dispatcher.run(stop), name="dispatcher")
            group.create_task(upload.run(drained, config.beat_s), name="log")
            asking = group.create_task(places.ask(runners), name="asking")
            try:
                yield greeting.worker
            finally:
                asking.cancel()
                stop.set()
                await asyncio.wait({working})
                drained.set()


def _both(
    upload: Callable[[str], None], copy: Callable[[str], None] | None
) -> Callable[[str], None]:
    if copy is None:
        return upload

    def put(line: str) -> None:
        copy(line)
        upload(line)

    return put


async def greeting_of(settings: Settings) -> Greeting:
    """What the server of the settings says to a worker from here; raises as `working_for` does."""
    async with _greeted(Elsewhere(None, None), settings) as (_, greeting):
        return greeting


@asynccontextmanager
async def _greeted(
    elsewhere: Elsewhere, settings: Settings
) -> AsyncIterator[tuple["Connection", Greeting]]:
    from bot.remote.connection import connected  # noqa: PLC0415 - see above

    token = settings.worker_token
    there = server(
        elsewhere.url or settings.worker_server or "",
        elsewhere.token or ("" if token is None else token.get_secret_value()),
        insecure=elsewhere.plain_http,
    )
    async with connected(there, secrets.token_hex(8), places.harness_version()) as connection:
        try:
            greeting = await connection.ask("hello", None, Greeting)
        except StoreError as error:
            raise SetupError(f"{error}; check the address, the network and the server") from error
        yield connection, greeting


def _config(greeting: Greeting, runners: Sequence[Runner]) -> DispatchConfig:
    return DispatchConfig(
        worker=greeting.worker,
        lease=timedelta(seconds=greeting.lease_s),
        beat_s=greeting.lease_s / 6,
        poll_s=POLL_S,
        progress_s=PROGRESS_S,
        grace_s=places.grace_s(runners),
    )

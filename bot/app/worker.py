"""A worker: judges queued jobs, here or for a remote Podium."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from bot.app.context import OpenPodium, RemoteServer, RoundLimit, SystemClock
from bot.app.logs import log_to
from bot.app.runners import grace_s, harness_version, require_available
from bot.domain.api.workers import WorkerConfig
from bot.domain.errors import SetupError, StoreError
from bot.remote.http import ServerConnection, connected, server
from bot.services.confirmations import run_confirmations
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.maintenance import recover, time_references
from bot.services.notify import run_notifications
from bot.settings import Settings
from bot.store.locks import judging, judging_in_turn
from runners.contract.runner import Runner

POLL_S = 5.0
"""Seconds between two claims without a notice: a notice may be lost."""
PROGRESS_S = 1.0
"""Seconds between two progress reports of one stage to a server."""

_Upkeep = Callable[[asyncio.Event], Coroutine[None, None, None]]
"""Periodic work that ends once its event is set."""


@asynccontextmanager
async def working(
    data_dir: Path, podium: OpenPodium, runners: Sequence[Runner], limit: RoundLimit | None = None
) -> AsyncIterator[None]:
    """Judge the queue until the block ends, then drain; only one process per data folder may do so.

    With `limit` no reference is timed, and no run is held back for a comparison. SetupError when
    another process judges for this data folder, RunnerError when a runner cannot say what it
    offers.
    """
    timing = limit is None
    async with judging(data_dir), _working(podium, runners, limit, references=timing):
        yield


@asynccontextmanager
async def working_in_turn(
    data_dir: Path,
    podium: OpenPodium,
    opening: Callable[[], AbstractAsyncContextManager[Sequence[Runner]]],
) -> AsyncIterator[None]:
    """Judge the queue until the block ends, once no other process does for this data folder.

    The runners are opened only then: two processes that judge on one machine would disturb each
    other's times.
    """
    stop = asyncio.Event()

    async def work() -> None:
        async with judging_in_turn(data_dir, stop) as turn:
            if turn:
                async with opening() as runners, _working(podium, runners):
                    await stop.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(work(), name="turn")
        try:
            yield
        finally:
            stop.set()


@asynccontextmanager
async def working_for(
    remote: RemoteServer,
    runners: Sequence[Runner],
    settings: Settings,
    copy: Callable[[str], None] | None = None,
) -> AsyncIterator[str]:
    """Judge a server's queue until the block ends, then drain; yield the worker's name there.

    `copy` is called with each line of the log. SetupError when another process judges for this data
    folder or the server cannot be reached at first, UserError when it refuses, then or later;
    RunnerError when a runner cannot say what it offers.
    """
    from bot.remote.worker import LogUpload, RemoteQueue  # noqa: PLC0415 - only when it is needed

    async with judging(settings.data_dir), _connected(remote, settings) as (connection, answer):
        upload = LogUpload(connection)
        hidden = (*settings.secrets, *([remote.token] if remote.token else ()))
        log_to(
            settings.data_dir / "podium.log", _to_both(upload.put, copy), hidden, settings.log_level
        )
        config = DispatchConfig(
            worker=answer.worker,
            lease=timedelta(seconds=answer.lease_s),
            heartbeat_s=answer.lease_s / 6,
            poll_s=POLL_S,
            progress_s=PROGRESS_S,
            grace_s=grace_s(runners),
        )
        queue = RemoteQueue(connection, config.lease)
        dispatcher = Dispatcher(queue, runners, SystemClock(), config)
        drained = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(upload.run(drained, config.heartbeat_s), name="log")
            try:
                async with _dispatching(dispatcher, runners):
                    yield answer.worker
            finally:
                drained.set()


async def hello(settings: Settings) -> WorkerConfig:
    """Return what the server in the settings sends to a new worker; errors as in `working_for`."""
    async with _connected(RemoteServer(None, None), settings) as (_, answer):
        return answer


@asynccontextmanager
async def _working(
    podium: OpenPodium,
    runners: Sequence[Runner],
    limit: RoundLimit | None = None,
    *,
    references: bool = False,
) -> AsyncIterator[None]:
    """Run the dispatcher of this queue, and the maintenance of its database."""
    period_s = podium.lease_s / 6
    config = DispatchConfig(
        rounds=None if limit is None else limit.rounds,
        rounds_for=None if limit is None else limit.people,
        lease=timedelta(seconds=podium.lease_s),
        heartbeat_s=period_s,
        grace_s=grace_s(runners),
        # A process that ends with its own submission would not make the comparison.
        confirm_places=podium.confirm_places and references,
    )
    store, clock = podium.store, podium.clock
    upkeep: dict[str, _Upkeep] = {
        "reaper": lambda stop: recover(store, stop, every_s=period_s),
        "confirmations": lambda stop: run_confirmations(store, clock, stop),
        "notifications": lambda stop: run_notifications(store, clock, stop, every_s=period_s),
    }
    if references:
        upkeep["references"] = lambda stop: time_references(store, stop, every_s=period_s)
    dispatcher = Dispatcher(StoreQueue(store, config), runners, clock, config)
    async with _dispatching(dispatcher, runners, upkeep):
        yield


@asynccontextmanager
async def _dispatching(
    dispatcher: Dispatcher, runners: Sequence[Runner], upkeep: dict[str, _Upkeep] | None = None
) -> AsyncIterator[None]:
    """Run a dispatcher and the maintenance until the block ends, then drain.

    If a runner cannot serve, raise its RunnerError.
    """
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(dispatcher.run(stop), name="dispatcher")
        for name, task in (upkeep or {}).items():
            group.create_task(task(stop), name=name)
        checking = group.create_task(require_available(runners), name="runners")
        try:
            yield
        finally:
            checking.cancel()
            stop.set()


@asynccontextmanager
async def _connected(
    remote: RemoteServer, settings: Settings
) -> AsyncIterator[tuple[ServerConnection, WorkerConfig]]:
    token = settings.worker_token
    remote_server = server(
        remote.url or settings.worker_server or "",
        remote.token or ("" if token is None else token.get_secret_value()),
        insecure=remote.plain_http,
    )
    async with connected(remote_server, secrets.token_hex(8), harness_version()) as connection:
        try:
            answer = await connection.post("hello", None, WorkerConfig)
        except StoreError as error:
            raise SetupError(f"{error}; check the address, the network and the server") from error
        yield connection, answer


def _to_both(
    upload: Callable[[str], None], copy: Callable[[str], None] | None
) -> Callable[[str], None]:
    if copy is None:
        return upload

    def put(line: str) -> None:
        copy(line)
        upload(line)

    return put

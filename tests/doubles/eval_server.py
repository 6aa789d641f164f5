"""The evaluation server's API without a network, with a fake runner behind the queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from bot.services.tokens import create_token
from bot.web.compat.evaluation_server.requests import EvaluateRequest
from bot.web.context import WebContext
from runners.backends import fake
from tests.doubles.agents import application, make_door
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import dispatching, until
from tests.doubles.memory_store import MemoryStore

HERE = "http://127.0.0.1"


def kernel(directive: str = "", **changes: object) -> dict[str, Any]:
    """A kernel as the client sends it; a directive in its source sets the fake runner's result."""
    fate = f"# fake: {directive}\n" if directive else ""
    return {"source_code": f"{fate}class Model: ...\n", "kernel_type": "torch", **changes}


def evaluation(directive: str = "", **changes: object) -> dict[str, Any]:
    """The body of a request to judge one kernel."""
    return {"kernel": kernel(directive), "num_trials": 20, "timeout": 30, **changes}


def comparison(directive: str = "", **changes: object) -> dict[str, Any]:
    """The body of a request to judge a kernel against its reference."""
    kernels = {"ref_kernel": kernel(), "custom_kernel": kernel(directive)}
    return {**kernels, "num_trials": 20, "timeout": 30, **changes}


def make_request(directive: str = "", **changes: object) -> EvaluateRequest:
    """The body of `evaluation` as a request."""
    return EvaluateRequest.model_validate(evaluation(directive, **changes))


@dataclass(frozen=True, slots=True)
class EvalServer:
    """A web server that accepts this machine only, with its store."""

    door: WebContext
    store: MemoryStore
    clock: ManualClock

    @asynccontextmanager
    async def client(
        self,
        *,
        local: bool = True,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> AsyncIterator[httpx.AsyncClient]:
        """A client of a new application, as after a restart of the server."""
        app = application(self.door)
        app.state.loopback = local
        way = httpx.ASGITransport(app, raise_app_exceptions=False)
        values: dict[str, Any] = {"base_url": f"{HERE}/eval", **options}
        async with httpx.AsyncClient(transport=way, **values) as client:
            yield client

    async def asked(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own
        """The response of a new application to a program on this machine."""
        async with self.client() as client:
            return await client.request(method, path, **options)

    async def token(self, name: str = "ada") -> str:
        """The secret of a person's token."""
        person = await self.store.people.ensure(f"local:{name}", name)
        return (await create_token(self.store, person.id, "test")).secret


@asynccontextmanager
async def eval_server(
    store: MemoryStore, clock: ManualClock, slots: dict[str, int] | None = None
) -> AsyncIterator[EvalServer]:
    """A web server and a fake runner with these slots; without slots there is no runner."""
    server = EvalServer(make_door(store, clock), store, clock)
    if slots == {}:
        yield server
        return
    async with dispatching(store, clock, [fake.create(slots=slots)]):
        await until(lambda: _is_announced(store))
        yield server


@asynccontextmanager
async def hurrying(clock: ManualClock) -> AsyncIterator[None]:
    """Move the clock forward continuously, so that the next attempt at a job starts at once."""

    async def fly() -> None:
        while True:
            await asyncio.sleep(0.01)
            clock.advance(2)

    flying = asyncio.create_task(fly())
    try:
        yield
    finally:
        flying.cancel()


async def _is_announced(store: MemoryStore) -> bool:
    return any(each.offers for each in await store.workers.alive())

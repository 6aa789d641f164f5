"""The web server without a network, and the queue that a remote worker reaches through it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
from fastapi import FastAPI
from starlette.routing import BaseRoute

from bot.ports import Clock, Store
from bot.remote.http import Server, ServerConnection, connected
from bot.remote.worker import RemoteQueue
from bot.services.worker_tokens import create_worker_token
from bot.web.app import build
from bot.web.context import WebContext

HARNESS = "1.2.3"
SESSION = "0123abcd"
LEASE = timedelta(seconds=30)


def make_door(store: Store, clock: Clock) -> WebContext:
    """A web server that expects the harness version `HARNESS`."""
    return WebContext(store, clock, LEASE, HARNESS, "9.8.7")


def way_to(door: WebContext) -> httpx.ASGITransport:
    """A transport to a new application of the server, without a network."""
    return httpx.ASGITransport(application(door), raise_app_exceptions=False)


def application(door: WebContext) -> FastAPI:
    """A new application that reuses the first one's routes, which FastAPI is slow to analyze."""
    app = build(door)
    app.router.routes = _analysed or app.router.routes
    _analysed[:] = app.router.routes
    return app


_analysed: list[BaseRoute] = []


async def make_token(store: Store, clock: Clock, name: str = "box") -> str:
    """Create a worker's token and return its secret."""
    admin = await store.people.ensure("local:admin", "Admin")
    made = await create_worker_token(store, clock, admin.id, name, lifetime=timedelta(days=1))
    return made.secret


@asynccontextmanager
async def connecting(
    door: WebContext, token: str, session: str = SESSION, harness: str = HARNESS
) -> AsyncIterator[ServerConnection]:
    """A remote worker's connection to the server."""
    server = Server("http://podium.test", token)
    async with connected(server, session, harness, way_to(door)) as connection:
        yield connection


@asynccontextmanager
async def remote_queue(store: Store, clock: Clock, name: str = "box") -> AsyncIterator[RemoteQueue]:
    """The queue of a new remote worker."""
    token = await make_token(store, clock, name)
    async with connecting(make_door(store, clock), token) as connection:
        yield RemoteQueue(connection, LEASE)

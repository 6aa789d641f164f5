"""The REST API: every route, its limits and faults, and a record of every request."""

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NoReturn

from aiohttp import web

from tests.doubles.discord.errors import ApiError, RateLimitedError, refusal
from tests.doubles.discord.gateway.connection import Admission
from tests.doubles.discord.model.activity import archive_inactive
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.world import World
from tests.doubles.discord.rest import (
    channels,
    commands,
    guilds,
    identity,
    interactions,
    messages,
    threads,
)
from tests.doubles.discord.rest.bodies import read_body
from tests.doubles.discord.rest.calls import ENDPOINTS, Answer, Call, Endpoint
from tests.doubles.discord.rest.faults import Fault, Faults, NoAnswerError
from tests.doubles.discord.rest.rates import RateLimits, Request, refused_headers

RESOURCES = (channels, commands, guilds, identity, interactions, messages, threads)
"""Importing a resource adds its endpoints."""
VERSIONS = (9, 10)
INACTIVITY_CHECK_S = 60.0
"""The shortest time after which a thread can be archived is an hour."""
CRASHED = 501
"""The status for a defect of this server; discord.py does not retry it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Record:
    """One request of the bot, and the response."""

    method: str
    path: str
    route: str
    time: float
    status: int = 0
    code: int = 0
    message: str = ""
    body: object = None
    answer: Answer = None
    errors: object = None
    injected: bool = False
    """Whether the test asked for this failure."""

    @property
    def refused(self) -> bool:
        return self.status >= 400 and not self.injected

    def summary(self) -> str:
        outcome = f"{self.status} {self.code} {self.message} {self.errors or ''}".strip()
        return f"{self.method} {self.path} -> {outcome}"


@dataclass
class Reply:
    """A response to be sent."""

    status: int
    payload: Answer
    headers: dict[str, str] = field(default_factory=dict)


class RestApi:
    """Serves the world over HTTP."""

    def __init__(self, world: World, admission: Admission, rates: RateLimits) -> None:
        self._world, self._admission, self.rates = world, admission, rates
        self.faults = Faults()
        self.latency = 0.0
        self._archived_at = 0.0
        self.requests: list[Record] = []
        self.unknown: list[str] = []
        """Requests to routes that are not served here."""
        self.crashes: list[str] = []
        """Tracebacks of defects of this server."""

    def add_to(self, app: web.Application) -> None:
        for endpoint in sorted(ENDPOINTS, key=lambda endpoint: endpoint.literal_first):
            for version in VERSIONS:
                path = f"/api/v{version}{endpoint.path}"
                app.router.add_route(endpoint.method, path, self._handler(endpoint))
        app.router.add_get("/cdn/{rest:.*}", self._serve_file)
        app.router.add_route("*", "/{rest:.*}", self._serve_unknown)

    def _handler(self, endpoint: Endpoint) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            now = self._world.clock.now()
            record = Record(endpoint.method, request.path, endpoint.path, now)
            self.requests.append(record)
            try:
                reply = await self._reply(endpoint, request, record)
            except NoAnswerError:
                if request.transport:
                    request.transport.abort()
                return web.Response(status=502)
            record.status, record.answer = reply.status, reply.payload
            self._world.changed()
            return _written(reply)

        return handle

    async def _reply(self, endpoint: Endpoint, request: web.Request, record: Record) -> Reply:
        headers: dict[str, str] = {}
        try:
            record.body, files = await read_body(request, self._world.limits.file_size)
            await asyncio.sleep(self.latency)
            fault = self.faults.find(endpoint.method, endpoint.path)
            if fault and not fault.carried_out:
                await _fail(fault, record)
            headers = self._admit(endpoint, request, record)
            self._archive_inactive()
            answer = endpoint.handler(self._call(request, record, files))
            if fault:
                await _fail(fault, record)
        except RateLimitedError as error:
            record.code, record.message = error.code, error.message
            return Reply(error.status, error.body(), refused_headers(error))
        except ApiError as error:
            record.code, record.message, record.errors = error.code, error.message, error.errors
            payload = {"message": error.message, "code": error.code}
            more = {"errors": error.errors} if error.errors else {}
            return Reply(error.status, payload | more, headers)
        except NoAnswerError:
            raise
        except Exception:  # noqa: BLE001 -- a defect here must not look like Discord's refusal
            self.crashes.append(f"{request.method} {request.path}\n{traceback.format_exc()}")
            return Reply(CRASHED, {"message": "the local Discord crashed", "code": 0})
        return Reply(204 if answer is None else endpoint.status, answer, headers)

    def _archive_inactive(self) -> None:
        """Archive inactive threads, if a thread can have become inactive since the last time."""
        now = self._world.clock.now()
        if now >= self._archived_at + INACTIVITY_CHECK_S:
            self._archived_at = now
            archive_inactive(self._world)

    def _admit(self, endpoint: Endpoint, request: web.Request, record: Record) -> dict[str, str]:
        """Check the token, which interaction routes do not need, and the rate limits."""
        open_to_all = endpoint.path.startswith(("/interactions", "/webhooks"))
        authorization = request.headers.get("Authorization")
        if not open_to_all and authorization != f"Bot {self._admission.token}":
            raise ApiError(401, 0, "401: Unauthorized")
        names = dict(request.match_info)
        return self.rates.check(Request(endpoint.method, endpoint.path, names, record.body))

    def _call(self, request: web.Request, record: Record, files: list[File]) -> Call:
        if any(len(file.data) > self._world.limits.file_size for file in files):
            raise refusal(40005)
        names, query = dict(request.match_info), dict(request.query)
        body = {} if record.body is None else record.body
        return Call(self._world, self._admission, names, query, body, files)

    async def _serve_file(self, request: web.Request) -> web.Response:
        path, signed = request.match_info["rest"], "hm" in request.query
        file = self._world.cdn.find(path, signed=signed, now=self._world.clock.now())
        if file is None:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=file.data, content_type=file.content_type)

    async def _serve_unknown(self, request: web.Request) -> web.Response:
        self.unknown.append(f"{request.method} {request.path}")
        return _written(Reply(404, {"message": "404: Not Found", "code": 0}))


async def _fail(fault: Fault, record: Record) -> NoReturn:
    record.injected = True
    await fault.fail()


def _written(reply: Reply) -> web.Response:
    """Return the response as discord.py expects it.

    It compares the content type with exactly "application/json", and treats a 429 without the
    header `Via` as a ban.
    """
    headers = {"Via": "1.1 local-discord"} | reply.headers
    if reply.payload is None:
        return web.Response(status=reply.status, headers=headers)
    headers["Content-Type"] = "application/json"
    body = json.dumps(reply.payload).encode()
    return web.Response(status=reply.status, headers=headers, body=body)

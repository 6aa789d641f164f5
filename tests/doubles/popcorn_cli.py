"""popcorn-cli as a server sees it: the bytes that it sends, and how it reads the answers.

The client is written in Rust with reqwest: it sends header names in lower case, in reqwest's order,
and a form with one part that has a file name and no content type.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from bot.domain.accounts import TokenScope
from bot.services.tokens import create_token
from tests.doubles.agents import make_door, way_to
from tests.doubles.place import Place

BOUNDARY = "5a1b0f8e6c3d2947-0c9d8e7f6a5b4c3d-1122334455667788-99aabbccddeeff00"
SOURCE = b"def custom_kernel(data):\n    return data\n"

Json = dict[str, Any]


def form(
    content: bytes = SOURCE, disposition: str = 'filename="kernel.py"', **fields: str
) -> bytes:
    """The body of an upload, with other fields after the file."""
    parts = {f'"file"; {disposition}': content}
    parts |= {f'"{name}"': value.encode() for name, value in fields.items()}
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name="
    body = b"".join(
        f"{head}{name}\r\n\r\n".encode() + value + b"\r\n" for name, value in parts.items()
    )
    return body + f"--{BOUNDARY}--\r\n".encode()


def upload_headers(token: str | None, length: int) -> tuple[tuple[str, str], ...]:
    """The headers of an upload in order, without `host`."""
    sent = (
        ("content-type", f"multipart/form-data; boundary={BOUNDARY}"),
        ("content-length", str(length)),
        ("accept", "*/*"),
    )
    return sent if token is None else (*sent, ("x-popcorn-cli-id", token))


@lru_cache(maxsize=1)
def _way_of(place: Place) -> httpx.ASGITransport:
    """One application for all clients of a test, because its first response is slow."""
    return way_to(make_door(place.store, place.clock))


@dataclass(frozen=True, slots=True)
class PopcornCli:
    """The command line with one `~/.popcorn.yaml`, and the application that it calls."""

    place: Place
    token: str | None
    way: httpx.ASGITransport

    @classmethod
    async def of(
        cls, place: Place, name: str = "ada", scope: TokenScope = TokenScope.PERSON
    ) -> Self:
        """The command line of a person, with a token of theirs in that file."""
        made = await create_token(place.store, await place.person(name), "popcorn", scope=scope)
        return cls.with_token(place, made.secret)

    @classmethod
    def with_token(cls, place: Place, token: str | None) -> Self:
        """The command line with this token in that file."""
        return cls(place, token, _way_of(place))

    async def asked(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] | None = None,
    ) -> httpx.Response:
        """The answer to one request."""
        if headers is None:
            headers = () if self.token is None else (("x-popcorn-cli-id", self.token),)
        request = httpx.Request(
            method, f"http://podium.test/popcorn{path}", content=body, headers=list(headers)
        )
        answer = await self.way.handle_async_request(request)
        await answer.aread()
        return answer

    async def get(self, path: str) -> Any:  # noqa: ANN401 - any JSON
        """The JSON body of a successful GET request."""
        answer = await self.asked("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def posted(self, path: str, body: bytes | None = None) -> httpx.Response:
        """The answer to an upload."""
        body = form() if body is None else body
        return await self.asked("POST", path, body, upload_headers(self.token, len(body)))

    async def submit(self, mode: str = "test", board: str = "vectoradd") -> int:
        """Submit a kernel and return the id of the submission."""
        answer = await self.posted(f"/submission/{board}/CPU/{mode}")
        assert answer.status_code == 202, answer.text
        number = answer.json()["details"]["id"]
        assert isinstance(number, int)
        return number

    async def poll(self, number: int) -> Json:
        """The status of the caller's own submission."""
        found: Json = await self.get(f"/user/submissions/{number}")
        return found


@dataclass(frozen=True, slots=True)
class Line:
    """A connection on which a request was sent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def head(self) -> str:
        """The answer's status and headers, in small letters."""
        return (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def json(self, head: str) -> Json:
        """The answer's body, whose length is in its headers."""
        found = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
        body: Json = json.loads(await self.reader.readexactly(int(found["content-length"])))
        return body

    async def event(self) -> str:
        """The next event of a stream."""
        return (await self.reader.readuntil(b"\n\n")).decode()


@asynccontextmanager
async def uploading(url: str, token: str, path: str, body: bytes) -> AsyncIterator[Line]:
    """A connection to a running server on which an upload was sent; closed after the block."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    headers = (*upload_headers(token, len(body)), ("host", parts.netloc))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    writer.write(f"POST /popcorn{path} HTTP/1.1\r\n{head}\r\n".encode() + body)
    try:
        await writer.drain()
        yield Line(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def events(stream: str) -> list[tuple[str, Json]]:
    """The events of a stream, read as the command line reads them."""
    found = []
    for message in stream.split("\n\n")[:-1]:
        lines = dict(line.split(":", 1) for line in message.splitlines())
        found.append((lines["event"].strip(), json.loads(lines["data"])))
    return found


def completion_error(details: Json, gpu: str) -> str | None:
    """Why the command line says that a ranked submission will not appear on its board.

    It requires a public score, a secret run that passed, and no run that failed.
    """
    ranked = [run for run in details["runs"] if run["mode"] == "leaderboard"]
    of_gpu = [run for run in ranked if run["runner"].lower() == gpu.lower()]
    if not any(run["passed"] and run["score"] for run in of_gpu if not run["secret"]):
        return "completed without a leaderboard score"
    if not any(run["passed"] for run in of_gpu if run["secret"]):
        return "did not pass secret leaderboard validation"
    return None

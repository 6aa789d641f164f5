"""A person's requests, retried after broken connections and while a server is unavailable."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from bot.domain.api.base import PATH, ResponseBody
from bot.domain.api.submissions import SubmissionAnswer
from bot.domain.errors import SetupError, StoreError, UserError
from bot.remote import http

_UNKNOWN_PATHS = frozenset({"not-found", "method-not-allowed"})
"""Error codes of a Podium that does not have a path."""
_ADVICE = "check the address, the network and the server"

Kind = TypeVar("Kind", bound=ResponseBody)


class OutcomeUnknownError(SetupError):
    """The server received the request and did not respond: it may have been executed.

    `lost` says what happened, without advice.
    """

    def __init__(self, lost: str, advice: str = "") -> None:
        super().__init__(f"{lost}; {advice}" if advice else lost)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class ApiClient:
    """A person's requests to one server.

    StoreError while it is unavailable; UserError with the server's message for the person's errors,
    and for a server that is too old or is not a Podium.
    """

    connection: http.ServerConnection

    @property
    def url(self) -> str:
        """Return the server's address."""
        return self.connection.url

    async def get(
        self, path: str, kind: type[Kind], query: Mapping[str, str | int] | None = None
    ) -> Kind:
        """Return the response at a path."""
        return self.read(await self._request("GET", path, http.LONG_S, params=query), kind)

    async def post(
        self,
        path: str,
        kind: type[Kind],
        body: object = None,
        *,
        within_s: float = http.RESPONSE_S,
        headers: Mapping[str, str] | None = None,
    ) -> Kind:
        """Return the response to an action; OutcomeUnknownError if it may have been executed."""
        options: dict[str, Any] = {} if body is None else {"json": body}
        if headers is not None:
            options["headers"] = headers
        return self.read(await self._request("POST", path, within_s, **options), kind)

    async def upload(
        self,
        path: str,
        kind: type[Kind],
        file: tuple[str, str, bytes],
        fields: Mapping[str, str | Sequence[str]],
    ) -> Kind:
        """Return the response to a form with a file: its field, its name and its bytes."""
        field, name, data = file
        options: dict[str, Any] = {"files": {field: (name, data)}, "data": dict(fields)}
        return self.read(await self._request("POST", path, http.LONG_S, **options), kind)

    async def do(self, path: str, body: object) -> None:
        """Perform an action without a response body."""
        await self._request("POST", path, http.RESPONSE_S, json=body)

    async def delete(self, path: str, query: Mapping[str, str]) -> None:
        """Delete something."""
        await self._request("DELETE", path, http.RESPONSE_S, params=query)

    async def fetch(self, path: str, query: Mapping[str, str | int] | None = None) -> bytes:
        """Return the bytes of a file."""
        return await self._request("GET", path, http.LONG_S, params=query)

    async def lines(self, path: str, *, within_s: float) -> AsyncGenerator[bytes, None]:
        """Yield a long response line by line; each piece must arrive within that time.

        Text after the last line break is dropped.
        """
        partial = b""
        try:
            async with aclosing(self.connection.listen(path, within_s=within_s)) as chunks:
                async for chunk in chunks:
                    *complete, partial = (partial + chunk).split(b"\n")
                    _require_bounded(partial)
                    for line in complete:
                        yield line
        except SetupError:
            raise  # the server has said what is wrong
        except StoreError as error:
            raise SetupError(f"{error}; {_ADVICE}") from error

    async def _request(
        self,
        method: str,
        path: str,
        within_s: float,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> bytes:
        try:
            return await self.connection.request(method, path, within_s, **options)
        except SetupError:
            raise  # the server has said what is wrong
        except StoreError as error:
            if isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout):
                raise SetupError(f"{error}; {_ADVICE}") from error
            raise OutcomeUnknownError(str(error), _ADVICE) from error

    def read(self, text: bytes, kind: type[Kind]) -> Kind:
        """Return a response as this type; fields of a newer server are ignored."""
        with self.decoding():
            return kind.model_validate_json(text, extra="ignore")

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Raise UserError for an invalid response."""
        try:
            yield
        except ValueError as error:  # includes pydantic's own error
            raise UserError(
                "other-version",
                f"{self.url} sent a response that this version of podium does not understand; "
                "install the server's version of kernel-podium",
            ) from error


def _require_bounded(line: bytes) -> None:
    if len(line) > http.RESPONSE_MAX:
        raise StoreError(f"a line of the answer is longer than {http.RESPONSE_MAX} bytes")


@asynccontextmanager
async def open_client(
    server: http.Server, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[ApiClient]:
    """Yield a person's connection to the server; without a token, an anonymous one.

    `transport` replaces the network.
    """
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    to_error = partial(person_error, has_token=bool(server.token))
    async with http.new_client(f"{server.url}{PATH}/", headers, transport) as client:
        yield ApiClient(http.ServerConnection(client, server.url, to_error))


def person_error(refusal: http.Refusal, *, has_token: bool) -> Exception:
    """Return the error of a refusal for a person with or without a token."""
    if refusal.status == 503 and refusal.code:
        return OutcomeUnknownError(f"{refusal.url}: {refusal.message}")
    if refusal.status >= 500 and refusal.code:
        return SetupError(f"{refusal.url}: {refusal.message}")
    if refusal.status == 429:
        return UserError(refusal.code or "too-many-requests", f"{refusal.url}: {refusal.message}")
    return refusal.common_error() or _permanent_error(refusal, has_token=has_token)


def _permanent_error(refusal: http.Refusal, *, has_token: bool) -> UserError:
    if refusal.status == 401 and not has_token:
        words = f"{refusal.url} requires a login; sign in: podium login {refusal.url}"
        return UserError("no-token", words)
    if refusal.status == 401:
        words = (
            f"{refusal.url} refuses the token: {refusal.message}; then: podium login {refusal.url}"
        )
        return UserError("bad-token", words)
    if refusal.code in _UNKNOWN_PATHS:
        words = (
            f"{refusal.url} does not know this request: the address lacks a part of its path, or "
            "its Podium is older than this one and its operator has to update it"
        )
        return UserError("old-server", words)
    return UserError(refusal.code, refusal.message) if refusal.code else refusal.not_podium_error()


PATIENCE_S = 120.0
"""Seconds that a server may be unavailable before a command gives up."""
BUSY = "too-many-requests"
"""The code of a refusal that is only temporary."""
_FIRST_WAIT_S = 0.25
_MAX_WAIT_S = 5.0

Say = Callable[[str], None]
"""Prints a line to the person, separate from the results."""


class Outage:
    """How long a server has been unavailable; reports the start and the end once each."""

    def __init__(self, url: str, say: Say, patience_s: float) -> None:
        self._url = url
        self._say = say
        self._patience_s = patience_s
        self._since: float | None = None
        self._wait_s = _FIRST_WAIT_S

    @asynccontextmanager
    async def waiting_out(self) -> AsyncIterator[None]:
        """Wait after the block if the server was unavailable or busy in it."""
        try:
            yield
        except StoreError as error:
            await self.wait(error)
        except UserError as error:
            if error.code != BUSY:
                raise
            await self.wait(StoreError(error.message))
        else:
            self.end()

    def end(self) -> None:
        """Record that the server answers."""
        if self._since is not None:
            self._say(f"{self._url} answers again")
        self._since, self._wait_s = None, _FIRST_WAIT_S

    async def wait(self, error: StoreError) -> None:
        """Wait before the next attempt; SetupError when it was unavailable for too long."""
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
            self._say(f"{error}; retrying for {self._patience_s:.0f} s")
        if now - self._since >= self._patience_s:
            words = f"{error}; retried for {self._patience_s:.0f} s"
            raise SetupError(words) from error
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _MAX_WAIT_S)


KEY_HEADER = "Idempotency-Key"
_HOW_TO_CHECK = "it may have been accepted: check `podium history` before you try again"


async def submit_once(
    requests: ApiClient,
    path: str,
    body: object,
    *,
    say: Say,
    within_s: float,
    patience_s: float = PATIENCE_S,
) -> SubmissionAnswer:
    """Return the submission that a request creates; without a response, repeat it with its key.

    A server that cannot be reached at first is not tried again. SetupError when it has received the
    request and has been unavailable for `patience_s` since.
    """
    key = str(uuid4())
    outage = Outage(requests.url, say, patience_s)
    lost = False
    while True:
        try:
            response = await requests.post(
                path, SubmissionAnswer, body, within_s=within_s, headers={KEY_HEADER: key}
            )
        except OutcomeUnknownError as error:
            lost = True
            await _wait(outage, StoreError(error.lost))
        except SetupError as error:
            if not lost:
                raise
            await _wait(outage, error)
        except UserError as error:
            if not lost or error.code != BUSY:
                raise
            await _wait(outage, StoreError(error.message))
        else:
            outage.end()
            return response


async def _wait(outage: Outage, error: StoreError) -> None:
    try:
        await outage.wait(error)
    except SetupError as timeout:
        raise SetupError(f"{timeout}; {_HOW_TO_CHECK}") from error

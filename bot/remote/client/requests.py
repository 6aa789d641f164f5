"""A person's requests, repeated over broken connections and while a server is away."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from bot.domain.api.base import PATH, ResponseBody
from bot.domain.api.submissions import SubmissionAnswer
from bot.domain.errors import SetupError, StoreError, UserError
from bot.remote.http import (
    ANSWER_MAX,
    ANSWER_S,
    CONNECT_S,
    LONG_S,
    Refusal,
    Server,
    ServerConnection,
)

_UNKNOWN_PATHS = frozenset({"not-found", "method-not-allowed"})
"""Codes of a Podium that does not know a path at all."""
_ADVICE = "check the address, the network and the server"

Kind = TypeVar("Kind", bound=ResponseBody)


class OutcomeUnknownError(SetupError):
    """The server has had the request and said nothing of it: it may have been done.

    `lost` tells what happened, without what to do about it.
    """

    def __init__(self, lost: str, advice: str = "") -> None:
        super().__init__(f"{lost}; {advice}" if advice else lost)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class ApiClient:
    """What one person asks one server.

    StoreError while it is away; UserError with the server's words for what the person should
    change, and for a server that is too old or none of ours.
    """

    connection: ServerConnection

    @property
    def url(self) -> str:
        """The server's address."""
        return self.connection.url

    async def get(
        self, path: str, kind: type[Kind], query: Mapping[str, str | int] | None = None
    ) -> Kind:
        """What is at a path."""
        return self.read(await self._asked("GET", path, LONG_S, params=query), kind)

    async def post(
        self,
        path: str,
        kind: type[Kind],
        body: object = None,
        *,
        within_s: float = ANSWER_S,
        headers: Mapping[str, str] | None = None,
    ) -> Kind:
        """The answer to a deed; OutcomeUnknownError where it may have been done all the same."""
        options: dict[str, Any] = {} if body is None else {"json": body}
        if headers is not None:
            options["headers"] = headers
        return self.read(await self._asked("POST", path, within_s, **options), kind)

    async def upload(
        self,
        path: str,
        kind: type[Kind],
        file: tuple[str, str, bytes],
        fields: Mapping[str, str | Sequence[str]],
    ) -> Kind:
        """The answer to a form with a file: its field, its name and its bytes."""
        field, name, data = file
        options: dict[str, Any] = {"files": {field: (name, data)}, "data": dict(fields)}
        return self.read(await self._asked("POST", path, LONG_S, **options), kind)

    async def do(self, path: str, body: object) -> None:
        """A deed whose answer says nothing more."""
        await self._asked("POST", path, ANSWER_S, json=body)

    async def fetch(self, path: str, query: Mapping[str, str | int] | None = None) -> bytes:
        """The bytes of a file."""
        return await self._asked("GET", path, LONG_S, params=query)

    async def lines(self, path: str, *, within_s: float) -> AsyncGenerator[bytes, None]:
        """A long answer line by line, each piece of which comes within that time.

        What follows the last line's end is not given.
        """
        rest = b""
        try:
            async with aclosing(self.connection.listen(path, within_s=within_s)) as pieces:
                async for piece in pieces:
                    *whole, rest = (rest + piece).split(b"\n")
                    _require_bounded(rest)
                    for line in whole:
                        yield line
        except SetupError:
            raise  # the server has said what is wrong
        except StoreError as error:
            raise SetupError(f"{error}; {_ADVICE}") from error

    async def _asked(
        self,
        method: str,
        path: str,
        within_s: float,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> bytes:
        try:
            return await self.connection.asked(method, path, within_s, **options)
        except SetupError:
            raise  # the server has said what is wrong
        except StoreError as error:
            if isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout):
                raise SetupError(f"{error}; {_ADVICE}") from error
            raise OutcomeUnknownError(str(error), _ADVICE) from error

    def read(self, text: bytes, kind: type[Kind]) -> Kind:
        """An answer as this type; what a later server adds is passed over."""
        with self.understood():
            return kind.model_validate_json(text, extra="ignore")

    @contextmanager
    def understood(self) -> Iterator[None]:
        """UserError for an answer of which something is not what it must be."""
        try:
            yield
        except ValueError as error:  # pydantic's own is one
            raise UserError(
                "other-version",
                f"{self.url} answers in another way than this podium understands; install the "
                "version of kernel-podium that the server has",
            ) from error


def _require_bounded(line: bytes) -> None:
    if len(line) > ANSWER_MAX:
        raise StoreError(f"a line of the answer is longer than {ANSWER_MAX} bytes")


@asynccontextmanager
async def asking(
    server: Server, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[ApiClient]:
    """A person's way to the server, without a token as somebody who has no account.

    `transport` is another way there than the network.
    """
    signed = bool(server.token)
    client = httpx.AsyncClient(
        base_url=f"{server.url}{PATH}/",
        headers={"Authorization": f"Bearer {server.token}"} if signed else {},
        timeout=httpx.Timeout(LONG_S, connect=CONNECT_S),
        follow_redirects=False,  # the token is for this server alone
        verify=ssl.create_default_context(),
        transport=transport,
    )

    def refused(refusal: Refusal) -> Exception:
        return refuses_person(refusal, signed=signed)

    async with client:
        yield ApiClient(ServerConnection(client, server.url, refused))


def refuses_person(refusal: Refusal, *, signed: bool) -> Exception:
    """The error that a refusal is for somebody who has sent a token, or none."""
    if refusal.status == 503 and refusal.code:
        return OutcomeUnknownError(f"{refusal.url}: {refusal.words}")
    if refusal.status >= 500 and refusal.code:
        return SetupError(f"{refusal.url}: {refusal.words}")
    if refusal.status == 429:
        return UserError(refusal.code or "too-many-requests", f"{refusal.url}: {refusal.words}")
    return refusal.family() or _for_person(refusal, signed=signed)


def _for_person(refusal: Refusal, *, signed: bool) -> UserError:
    if refusal.status == 401 and not signed:
        words = f"{refusal.url} wants to know who you are; sign in: podium login {refusal.url}"
        return UserError("no-token", words)
    if refusal.status == 401:
        words = (
            f"{refusal.url} refuses the token: {refusal.words}; then: podium login {refusal.url}"
        )
        return UserError("bad-token", words)
    if refusal.code in _UNKNOWN_PATHS:
        words = (
            f"{refusal.url} does not know this request: the address lacks a part of its path, or "
            "its Podium is older than this one, and whoever runs it can update it"
        )
        return UserError("old-server", words)
    return UserError(refusal.code, refusal.words) if refusal.code else refusal.no_podium()


PATIENCE_S = 120.0
"""How long a server may be away before who waits is told so."""
BUSY = "too-many-requests"
"""The code of a refusal that passes by itself."""
_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0

Say = Callable[[str], None]
"""Tells a person a line, apart from the results."""


class Outage:
    """How long a server has been away, told once when it begins and once when it is over."""

    def __init__(self, url: str, say: Say, patience_s: float) -> None:
        self._url = url
        self._say = say
        self._patience_s = patience_s
        self._since: float | None = None
        self._wait_s = _FIRST_WAIT_S

    def over(self) -> None:
        """The server answers."""
        if self._since is not None:
            self._say(f"{self._url} answers again")
        self._since, self._wait_s = None, _FIRST_WAIT_S

    async def wait(self, error: StoreError) -> None:
        """Wait a while before it is asked again; SetupError when that was long enough."""
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
            self._say(f"{error}; asking on for {self._patience_s:.0f} s")
        if now - self._since >= self._patience_s:
            words = f"{error}; it was asked for {self._patience_s:.0f} s"
            raise SetupError(words) from error
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)


KEY = "Idempotency-Key"
_UNSURE = "whether it was taken in is not known: `podium history` tells, before you try again"


async def made_once(
    requests: ApiClient,
    path: str,
    body: object,
    *,
    say: Say,
    within_s: float,
    patience_s: float = PATIENCE_S,
) -> SubmissionAnswer:
    """The submission that a request makes; where no answer comes it is sent again with its key.

    A server that cannot be reached at first is not asked on. SetupError when it has had the
    request, and was away for `patience_s` since.
    """
    key = str(uuid4())
    outage = Outage(requests.url, say, patience_s)
    lost = False
    while True:
        try:
            answer = await requests.post(
                path, SubmissionAnswer, body, within_s=within_s, headers={KEY: key}
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
            outage.over()
            return answer


async def _wait(outage: Outage, error: StoreError) -> None:
    try:
        await outage.wait(error)
    except SetupError as ended:
        raise SetupError(f"{ended}; {_UNSURE}") from error

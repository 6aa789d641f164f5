"""The connections to Modal, and fetching the output of a call.

Modal's own `FunctionCall.get` unpickles whatever a container returns, and submitted code runs in
the container. This module therefore fetches the raw output. That needs two private names of Modal;
its version is pinned, and the conformance suite would detect a change.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import cbor2
import modal
from modal import Client
from modal._grpc_client import Retry  # type: ignore[attr-defined]  # private, see above
from modal._utils.async_utils import synchronizer
from modal.config import config
from modal_proto import api_pb2

from runners.backends.modal_app.container import ANSWER_MAX
from runners.contract.runner import RunnerError, RunnerLostError, UnknownCallError

MAX_POLLS = 90
"""The most long polls on one connection. A connection has a hundred streams. A poll that waits
for a free stream would miss the end of its call."""


class ModalConnections:
    """Connections to Modal, as many as the runner's concurrent polls need."""

    def __init__(self) -> None:
        self._polls: list[int] = [0]
        """The number of running polls on each connection."""
        self._others: list[modal.Client] = []
        """All connections except the first one, which the process uses for everything else too."""
        self._opening = asyncio.Lock()
        self._used = False

    async def first(self) -> modal.Client:
        """The connection for everything except polls; opened if needed."""
        opened = await modal.Client.from_env.aio()
        self._used = True
        return opened

    @asynccontextmanager
    async def for_poll(self) -> AsyncIterator[modal.Client]:
        """A connection with a free stream; opens another one if needed."""
        number = self._free_connection()
        self._polls[number] += 1
        try:
            yield await self._connection(number)
        finally:
            self._polls[number] -= 1

    def _free_connection(self) -> int:
        for number, polls in enumerate(self._polls):
            if polls < MAX_POLLS:
                return number
        self._polls.append(0)
        return len(self._polls) - 1

    async def _connection(self, number: int) -> modal.Client:
        if number == 0:
            return await self.first()
        async with self._opening:
            while len(self._others) < number:
                self._others.append(await _open_another() or await self.first())
        return self._others[number - 1]

    async def aclose(self) -> None:
        """Close all connections; a later use of the first one reopens it."""
        for client in (await self.first(), *self._others) if self._used else ():
            await client.close.aio()
        self._others.clear()
        self._used = False


async def _open_another() -> modal.Client | None:
    """Another connection of the same account; None if it authenticates without a token."""
    token, secret = config.get("token_id"), config.get("token_secret")
    return await modal.Client.from_credentials.aio(token, secret) if token and secret else None


_Status = api_pb2.GenericResult
_POLL_S = 50.0
"""The length of one long poll in seconds."""
_GRACE_S = 20.0


async def output(client: Client, call: str) -> str | None:
    """The output of a call; None if it has not ended within `_POLL_S`.

    UnknownCallError if it was cancelled or has expired, RunnerLostError if its container was lost,
    RunnerError if it took too long or could not start.
    """
    response, data = await _fetch.aio(client, call)
    if response.outputs:
        return _text_of(response.outputs[0], data)
    if response.num_unfinished_inputs == 0:
        raise UnknownCallError(f"Modal does not know call {call} any more")
    return None


@synchronizer.create_blocking
async def _fetch(
    client: Any,  # noqa: ANN401 - Modal's inner client
    call: str,
) -> tuple[Any, bytes]:
    """Poll once, in Modal's event loop; return the answer and the output, which may be a blob."""
    stub = client._stub  # noqa: SLF001 - see the top
    request = api_pb2.FunctionGetOutputsRequest(
        function_call_id=call,
        timeout=_POLL_S,
        last_entry_id="0-0",
        requested_at=time.time(),
        start_idx=0,
        end_idx=0,
    )
    retry_policy = Retry(attempt_timeout=_POLL_S + _GRACE_S)
    response = await stub.FunctionGetOutputs(request, retry=retry_policy)
    if not response.outputs:
        return response, b""
    result = response.outputs[0].result
    if result.WhichOneof("data_oneof") != "data_blob_id":
        return response, result.data
    blob = await stub.BlobGet(api_pb2.BlobGetRequest(blob_id=result.data_blob_id))
    async with aiohttp.ClientSession() as session, session.get(blob.download_url) as download:
        return response, await download.content.read(ANSWER_MAX + 1)


def _text_of(item: api_pb2.FunctionGetOutputsItem, data: bytes) -> str:
    result = item.result
    reason = result.exception.strip() or "no reason was given"
    match result.status:
        case _Status.GENERIC_STATUS_SUCCESS:
            return _decoded(item.data_format, data)
        case _Status.GENERIC_STATUS_TERMINATED:
            raise UnknownCallError(f"the call was cancelled at Modal: {reason}")
        case _Status.GENERIC_STATUS_TIMEOUT:
            raise RunnerError(f"the container exceeded its time limit: {reason}")
        case _Status.GENERIC_STATUS_INIT_FAILURE:
            raise RunnerError(f"no container could start: {reason}")
        case _:
            raise RunnerLostError(f"the container was lost: {reason}")


def _decoded(data_format: int, data: bytes) -> str:
    if data_format != api_pb2.DATA_FORMAT_CBOR:
        raise RunnerError("the container's response is not in the CBOR format")
    if len(data) > ANSWER_MAX:
        raise RunnerError(f"the container's response has more than {ANSWER_MAX} bytes")
    try:
        text = cbor2.loads(data)
    except (cbor2.CBORDecodeError, ValueError, TypeError) as error:
        raise RunnerError("the container's response cannot be decoded") from error
    if not isinstance(text, str):
        raise RunnerError("the container's response is not text")
    return text

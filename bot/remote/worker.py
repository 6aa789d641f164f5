"""A remote worker's queue and log upload, over HTTPS."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import timedelta

from bot.domain.api import workers as api
from bot.domain.errors import StoreError
from bot.domain.ids import JobId
from bot.domain.job import GiveUpReason, Heartbeat, LeasedJob, Notice, Topic
from bot.domain.requirements import in_service
from bot.ports import NO_RUNNERS
from bot.remote import http
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Capabilities

_PAUSE_S = 0.2
"""Seconds between two requests for notices: a busy queue must not occupy the connection."""
_MAX_ERROR_CHARS = 16_000
"""The most characters of a failed attempt's error; the server accepts no more."""


class RemoteQueue:
    """The server's queue for the worker with this token.

    A heartbeat times out early enough that another one can follow within the lease.
    """

    def __init__(self, connection: http.ServerConnection, lease: timedelta) -> None:
        self._connection = connection
        self._gpus: list[str] = []
        self._heartbeat_limit_s = min(http.RESPONSE_S, lease.total_seconds() / 3)

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        known = None if offers is None else dict(offers)
        self._gpus = list(in_service((known or {}).values()))
        await self._connection.send(
            "announce", api.WorkerOffers(offers=known), within_s=self._heartbeat_limit_s
        )

    async def leave(self) -> None:
        await self._connection.send("leave")

    @asynccontextmanager
    async def notices(self) -> AsyncIterator[AsyncIterator[Notice | None]]:
        async with aclosing(self._poll_notices()) as notices:
            yield notices

    async def _poll_notices(self) -> AsyncGenerator[Notice | None, None]:
        while True:
            if self._gpus:
                async with aclosing(self._request_notices(self._gpus)) as notices:
                    async for notice in notices:
                        yield notice
            yield None
            await asyncio.sleep(_PAUSE_S)

    async def _request_notices(self, gpus: list[str]) -> AsyncGenerator[Notice, None]:
        """Yield the received notices, after one that makes the caller poll: some may be lost."""
        query: dict[str, str | float | list[str]] = {"gpu": gpus, "wait_s": api.NOTICES_S}
        text = b""
        within_s = api.NOTICES_S + http.RESPONSE_S
        async with aclosing(self._connection.listen("notices", query, within_s=within_s)) as chunks:
            async for chunk in chunks:
                if not text:
                    yield Notice(Topic.READY, gpus[0])
                text += chunk
        for each in http.parsed(text, api.JobNotices).notices:
            if each.topic in set(Topic):
                yield Notice(Topic(each.topic), each.payload)

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        # The server infers a single runner; an older server does not accept this field.
        by_runner = {gpu: dict(each) for gpu, each in runners.items() if len(each) > 1}
        wanted = api.FreeSlots(slots=dict(slots), runners=by_runner or None)
        claimed = await self._connection.post("claim", wanted, api.Claimed)
        return tuple(job.leased for job in claimed.jobs)

    async def request(self, job: LeasedJob) -> EvaluationRequest | None:
        try:
            return await self._connection.get(
                _job_path(job, "request"), EvaluationRequest, within_s=http.LONG_S
            )
        except http.LeaseGoneError:
            return None

    async def heartbeat(self, held: Sequence[LeasedJob]) -> tuple[Heartbeat, ...]:
        jobs = tuple(api.HeldJob(id=job.id, fence=job.fence) for job in held)
        heartbeats = await self._connection.post(
            "beat", api.Held(jobs=jobs), api.Heartbeats, within_s=self._heartbeat_limit_s
        )
        return tuple(Heartbeat(JobId(each.id), each.cancel_requested) for each in heartbeats.jobs)

    async def attach(self, job: LeasedJob, call: str) -> bool:
        return await _still_holds(
            self._connection.send(_job_path(job, "attach"), api.RunnerCall(call=call))
        )

    async def report_progress(self, job: LeasedJob, progress: Progress) -> bool:
        return await _still_holds(self._connection.send(_job_path(job, "progress"), progress))

    async def accept(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> bool:
        _ = request  # the server has its own, which it uses for the score
        sending = self._connection.send(
            _job_path(job, "evaluation"), evaluation, within_s=http.LONG_S
        )
        return await _still_holds(sending)

    async def give_up(
        self, job: LeasedJob, reason: GiveUpReason, error: str = "", used_s: float = 0.0
    ) -> bool:
        body = api.GivenUp(why=reason, error=error[:_MAX_ERROR_CHARS], used_s=used_s)
        return await _still_holds(self._connection.send(_job_path(job, "give-up"), body))


def _job_path(job: LeasedJob, action: str) -> str:
    return f"jobs/{job.id}/{job.fence}/{action}"


async def _still_holds(request: Awaitable[None]) -> bool:
    try:
        await request
    except http.LeaseGoneError:
        return False
    return True


MAX_LINES = 1000
"""The most lines kept while the server is unavailable; the oldest are dropped."""
MAX_LINES_PER_REQUEST = 50
MAX_LINE_CHARS = 16_000
"""The most characters of a line; the rest of a longer one is only in the worker's own log."""


class LogUpload:
    """Accepts lines at any time and sends them periodically."""

    def __init__(self, connection: http.ServerConnection) -> None:
        self._connection = connection
        self._lines: deque[str] = deque()
        self._lost = 0

    def put(self, line: str) -> None:
        """Store a line until it is sent; never blocks."""
        self._lines.append(line[:MAX_LINE_CHARS])
        if len(self._lines) > MAX_LINES:
            self._lines.popleft()
            self._lost += 1

    async def run(self, stop: asyncio.Event, every_s: float) -> None:
        """Send the lines every `every_s` until `stop` is set, then once more."""
        while not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await stop.wait()
            with suppress(StoreError):
                await self.flush()

    async def flush(self) -> None:
        """Send all lines; StoreError when the server is unavailable, which loses none."""
        while self._lines or self._lost:
            lines = [
                self._lines.popleft() for _ in range(min(MAX_LINES_PER_REQUEST, len(self._lines)))
            ]
            try:
                await self._connection.send(
                    "log", api.LogLines(lines=tuple(lines), lost=self._lost)
                )
            except http.RefusedError:
                self._lost += len(lines)
                return
            except BaseException:
                self._lines.extendleft(reversed(lines))
                raise
            self._lost = 0

"""What a person's commands request of a remote Podium: its boards, submissions, exports and tasks.

A task is published by the server, which checks it first.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import httpx

from bot.domain import acceptance
from bot.domain.api import accounts, admin, publishing, submissions
from bot.domain.api import boards as api
from bot.domain.api.base import MOST_ON_A_PAGE
from bot.domain.board import Board, show_target
from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import Worker
from bot.domain.leaderboard import BoardStandings
from bot.domain.publication import Draft, PublishChange, Published, PublishedDraft, PublishRequest
from bot.domain.records import HistoryEntry, StoredFile
from bot.domain.status import SubmissionStatus
from bot.domain.tasks.bundle import write_zip
from bot.domain.tasks.lint import TaskReport
from bot.remote.client import decode, requests
from bot.remote.client.watch import watch
from bot.remote.http import RESPONSE_S, Server
from runners.contract.files import FILES_MAX
from runners.contract.runner import RunnerError
from runners.contract.task import Mode

SUBMIT_S = 60.0
"""Seconds that sending a submission may take."""
WORKER_POLL_S = 5.0
"""Seconds between two checks whether the server has a worker for a submission."""
CHUNK_S = 60.0
"""Seconds that the server may take for the next piece."""
CHECK_POLL_S = 0.5
"""Seconds between two polls of a check."""
_ENDED = frozenset({publishing.CheckState.PUBLISHED, publishing.CheckState.REFUSED})


@dataclass(frozen=True, slots=True)
class RemoteClient:
    """A person's client of one server; without a token, it sees what is public.

    `suffix` is what a further command needs to use the same server.
    """

    client: requests.ApiClient
    say: requests.Say
    suffix: str = ""
    look_s: float = WORKER_POLL_S

    async def whoami(self) -> str:
        return (await self.client.get("me", accounts.Me)).name

    async def submit(
        self, file_name: str, content: bytes, mode: Mode, *, board: str | None, gpus: Sequence[str]
    ) -> SubmissionId:
        body = {
            "file_name": file_name,
            "source": acceptance.source_text(content),
            "mode": mode,
            "board": board,
            "gpus": list(gpus),
        }
        return await self._submit("submissions", body, SUBMIT_S)

    async def rerun(self, number: SubmissionId, mode: Mode | None) -> SubmissionId:
        return await self._submit(f"submissions/{number}/rerun", {"mode": mode}, RESPONSE_S)

    async def _submit(self, path: str, body: object, within_s: float) -> SubmissionId:
        submission = await requests.submit_once(
            self.client, path, body, say=self.say, within_s=within_s
        )
        return SubmissionId(submission.id)

    async def cancel(self, number: SubmissionId) -> int:
        return (
            await self.client.post(f"submissions/{number}/cancel", submissions.Cancelled)
        ).stopped

    async def withdraw(self, number: SubmissionId, reason: str) -> None:
        await self.client.do(f"submissions/{number}/withdraw", {"reason": reason})

    async def status(self, number: SubmissionId) -> SubmissionStatus:
        return decode.status_of(await self._submission(number))

    async def _submission(self, number: SubmissionId) -> submissions.SubmissionAnswer:
        return await self.client.get(f"submissions/{number}", submissions.SubmissionAnswer)

    def watch(self, number: SubmissionId) -> AsyncIterator[SubmissionStatus]:
        return watch(self.client, number, lambda: self.status(number), say=self.say)

    async def files(self, number: SubmissionId) -> Sequence[StoredFile]:
        folder = f"submissions/{number}/files"
        found = await self.client.get(folder, submissions.ProfileFiles)
        stored: list[StoredFile] = []
        for each in found.files[:FILES_MAX]:
            path = f"{folder}/{quote(each.gpu, safe='')}/{quote(each.name, safe='')}"
            content = await self.client.fetch(path)
            with self.client.decoding():
                stored.append(decode.file_of(each, content))
        return tuple(stored)

    async def boards(self) -> Sequence[Board]:
        query: dict[str, str | int] = {"limit": MOST_ON_A_PAGE}
        found: list[Board] = []
        while True:
            page = await self.client.get("leaderboards", api.BoardsAnswer, query)
            found += map(decode.board_of, page.boards)
            if page.next is None or not page.boards:
                return tuple(found)
            query["cursor"] = page.next

    async def standings(
        self, board: str, gpu: str | None, version: int | None
    ) -> Sequence[BoardStandings]:
        query: dict[str, str | int] = {} if gpu is None else {"gpu": gpu}
        if version is not None:
            query["version"] = version
        path = f"leaderboards/{quote(board, safe='')}/standings"
        found = await self.client.get(path, api.LeaderboardsAnswer, query)
        with self.client.decoding():
            return decode.leaderboards_of(found)

    async def template(self, board: str, language: str | None) -> bytes:
        query: dict[str, str | int] = {} if language is None else {"lang": language}
        return await self.client.fetch(f"leaderboards/{quote(board, safe='')}/template", query)

    async def history(self, board: str | None, limit: int) -> Sequence[HistoryEntry]:
        entries: list[HistoryEntry] = []
        query: dict[str, str | int] = {} if board is None else {"board": board}
        while len(entries) < limit:
            query["limit"] = min(MOST_ON_A_PAGE, limit - len(entries))
            page = await self.client.get("submissions", submissions.HistoryAnswer, query)
            entries += map(decode.entry_of, page.submissions)
            if page.next is None or not page.submissions:
                break
            query["cursor"] = page.next
        return tuple(entries[:limit])

    async def publish(
        self, drafts: Sequence[Draft], say: requests.Say, *, unchecked: bool
    ) -> Sequence[PublishedDraft]:
        if unchecked:
            words = f"--unchecked is for this machine: {self.client.url} runs the solutions"
            raise UserError("usage", f"{words}; leave it out")
        published: list[PublishedDraft] = []
        try:
            for each in drafts:
                published.append(await publish_draft(self.client, each, say=say))  # noqa: PERF401
        except BaseException:
            if published:
                names = ", ".join(each.published.board.name for each in published)
                say(f"published already: {names}")
            raise
        return published

    def export(self, board: str) -> AsyncGenerator[api.ExportPiece, None]:
        return export_pieces(self.client, board)

    async def workers(self) -> tuple[Sequence[Worker], datetime]:
        found = await self.client.get("runners", admin.RunnersAnswer)
        return tuple(decode.worker_of(each) for each in found.runners), found.now

    def judging(self, say: requests.Say) -> AbstractAsyncContextManager[None]:
        _ = say
        return nullcontext()

    async def obstacle(self, number: SubmissionId) -> str | None:
        try:
            found = await self._submission(number)
        except StoreError:
            return None  # the command that follows it retries, with a limit
        gpus = [
            show_target(each.gpu, each.pool) for each in found.jobs if each.gpu in found.unserved
        ]
        return f"no connected worker offers {', '.join(gpus)} there now" if gpus else None

    async def worker_hint(self) -> str | None:
        workers, _ = await self.workers()
        return None if workers else f"{self.client.url} has no connected worker"

    def after_exit(self) -> str:
        return f"stays at {self.client.url}"


@asynccontextmanager
async def open_remote(
    server: Server,
    say: requests.Say,
    suffix: str = "",
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[RemoteClient]:
    """Yield a person's client of a server; `transport` replaces the network."""
    async with requests.open_client(server, transport) as client:
        yield RemoteClient(client, say, suffix)


async def export_pieces(
    client: requests.ApiClient, board: str
) -> AsyncGenerator[api.ExportPiece, None]:
    """Yield the pieces of an export up to its end; SetupError when it is incomplete."""
    path = f"leaderboards/{quote(board, safe='')}/export"
    async with aclosing(client.lines(path, within_s=CHUNK_S)) as lines:
        async for line in lines:
            with client.decoding():
                piece = api.PIECE.validate_json(line)
            yield piece
            if isinstance(piece, api.ExportEnd):
                return
    raise SetupError(f"{client.url}: the export is incomplete; run the command again")


async def publish_draft(
    client: requests.ApiClient, draft: Draft, *, say: requests.Say
) -> PublishedDraft:
    """Return the board published after the check there.

    UserError when it must not be published, with the same message as on this machine; RunnerError
    when a runner failed, not the task.
    """
    check = await _submit_task(client, draft)
    async with _advice_on_interrupt(client, check, say):
        check = await _follow_check(client, check, say)
    if check.problem is not None:
        raise _error(client, check.problem)
    if check.published is None or check.published.board is None:
        raise UserError("board-gone", f"leaderboard {check.name!r} was deleted meanwhile")
    with client.decoding():
        return _published_draft(check, check.published)


async def _submit_task(client: requests.ApiClient, draft: Draft) -> publishing.CheckAnswer:
    try:
        return await _upload(client, draft)
    except requests.OutcomeUnknownError as error:
        again = "run the same command again; nothing is published twice"
        words = f"{error.lost}; the task may have been accepted: {again}"
        raise SetupError(words) from error


async def _upload(client: requests.ApiClient, draft: Draft) -> publishing.CheckAnswer:
    request, bundle = draft.request, draft.bundle
    data = await asyncio.to_thread(write_zip, bundle)
    file = "task_zip", f"{bundle.name or bundle.root or draft.task.name}.zip", data
    board = f"leaderboards/{quote(draft.board_name, safe='')}"
    try:
        await client.get(board, api.BoardAnswer)
    except UserError as error:
        if error.code != "unknown-board":
            raise
        named = {"name": draft.board_name}
        return await client.upload(
            "leaderboards", publishing.CheckAnswer, file, _fields(request) | named
        )
    return await client.upload(f"{board}/task", publishing.CheckAnswer, file, _fields(request))


def _fields(request: PublishRequest) -> dict[str, str | Sequence[str]]:
    found: dict[str, str | Sequence[str]] = {"gpus": list(request.gpus)}
    if request.pins:
        found["pools"] = [f"{gpu}={pool}" for gpu, pool in request.pins]
    if request.deadline is not None:
        found["deadline"] = request.deadline.isoformat()
    if request.endless:
        found["endless"] = "true"
    if not request.strict:
        found["lenient"] = "true"
    if request.grader is not None:
        found["grader"] = request.grader.value
    return found


async def _follow_check(
    client: requests.ApiClient, check: publishing.CheckAnswer, say: requests.Say
) -> publishing.CheckAnswer:
    """Return the check once it has ended; retry while the server is unavailable."""
    outage = requests.Outage(client.url, say, requests.PATIENCE_S)
    shown: tuple[str, ...] = ()
    while True:
        for words in check.begun[len(shown) :]:
            say(words)
        shown = check.begun
        if check.state in _ENDED:
            return check
        await asyncio.sleep(CHECK_POLL_S)
        async with outage.waiting_out():
            check = await client.get(f"checks/{check.id}", publishing.CheckAnswer)


@asynccontextmanager
async def _advice_on_interrupt(
    client: requests.ApiClient, check: publishing.CheckAnswer, say: requests.Say
) -> AsyncIterator[None]:
    try:
        yield
    except (asyncio.CancelledError, StoreError):
        again = "run the same command again to see its result"
        say(f"the check of {check.name} continues at {client.url}; {again}")
        raise


def _error(client: requests.ApiClient, problem: publishing.CheckProblem) -> Exception:
    """Return the error that this machine would have raised."""
    match problem.code:
        case "runner":
            return RunnerError(problem.detail)
        case "incident":
            return SetupError(f"{client.url}: {problem.detail}")
        case _:
            return UserError(problem.code, problem.detail)


def _published_draft(
    check: publishing.CheckAnswer, answer: publishing.PublishedAnswer
) -> PublishedDraft:
    if answer.board is None:
        raise ValueError("the published board is missing")
    reports = tuple(TaskReport(check.name, each.gpu, (), each.obstacle) for each in answer.checked)
    board, change = decode.board_of(answer.board), PublishChange(answer.change)
    return PublishedDraft(
        Published(board, answer.task_version, change, answer.version_note), reports, check.grading
    )

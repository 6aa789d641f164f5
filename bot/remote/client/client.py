"""What a person's commands request of a remote Podium: its boards, submissions and exports."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import quote

import httpx

from bot.domain import acceptance
from bot.domain.api import accounts, admin, submissions
from bot.domain.api import boards as api
from bot.domain.api import publishing as bodies
from bot.domain.api.base import MOST_ON_A_PAGE
from bot.domain.api.export import PIECE, ExportCompetition, ExportEnd, ExportHead, ExportPiece
from bot.domain.api.finals import FinalsAnswer, FinalsCancelled
from bot.domain.board import Board, show_target
from bot.domain.competition import Competition, CompetitionStandings
from bot.domain.costs import CostReport
from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.finals import Final, FinalRequest
from bot.domain.ids import SubmissionId
from bot.domain.job import Worker
from bot.domain.leaderboard import BoardStandings
from bot.domain.publication import Draft, PublishedDraft
from bot.domain.records import HistoryEntry, StoredFile
from bot.domain.status import SubmissionStatus
from bot.remote.client import decode, publishing, requests
from bot.remote.client.watch import watch
from bot.remote.http import RESPONSE_S, Server
from runners.contract.files import FILES_MAX
from runners.contract.task import Mode

SUBMIT_S = 60.0
"""Seconds that sending a submission may take."""
WORKER_POLL_S = 5.0
"""Seconds between two checks whether the server has a worker for a submission."""
CHUNK_S = 60.0
"""Seconds that the server may take for the next piece."""


@dataclass(frozen=True, slots=True)
class RemoteClient:
    """A person's client of one server; without a token, it sees only what is public.

    `suffix` is what a further command needs to use the same server.
    """

    client: requests.ApiClient
    say: requests.Say
    suffix: str = ""
    poll_s: float = WORKER_POLL_S

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

    async def cancel(self, number: SubmissionId, reason: str | None) -> int:
        path, body = f"submissions/{number}/cancel", None
        if reason is not None:
            path, body = f"admin/{path}", {"reason": reason}
        return (await self.client.post(path, submissions.Cancelled, body)).stopped

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
            for competition, group in groupby(drafts, lambda each: each.competition):
                whole = [*group]
                parts = [[each] for each in whole] if competition is None else [whole]
                for part in parts:
                    published += await publishing.publish(self.client, competition, part, say=say)
        except BaseException:
            if published:
                names = ", ".join(each.published.board.name for each in published)
                say(f"published already: {names}")
            raise
        return published

    def export(self, board: str) -> AsyncGenerator[ExportPiece, None]:
        return export_pieces(self.client, "leaderboards", board)

    async def competitions(self) -> Sequence[Competition]:
        query: dict[str, str | int] = {"limit": MOST_ON_A_PAGE}
        found: list[Competition] = []
        while True:
            page = await self.client.get("competitions", bodies.CompetitionsAnswer, query)
            with self.client.decoding():
                found += map(decode.competition_of, page.competitions)
            if page.next is None or not page.competitions:
                return tuple(found)
            query["cursor"] = page.next

    async def competition(self, name: str) -> CompetitionStandings:
        path = f"competitions/{quote(name, safe='')}"
        answer = await self.client.get(path, bodies.CompetitionStandingsAnswer)
        with self.client.decoding():
            return decode.competition_standings_of(answer)

    async def close_competition(self, name: str) -> Competition:
        path = f"competitions/{quote(name, safe='')}/close"
        answer = await self.client.post(path, bodies.CompetitionAnswer)
        with self.client.decoding():
            return decode.competition_of(answer)

    async def extend_competition(self, name: str, until: datetime) -> Competition:
        path, body = f"competitions/{quote(name, safe='')}/extend", {"deadline": until.isoformat()}
        answer = await self.client.post(path, bodies.CompetitionAnswer, body)
        with self.client.decoding():
            return decode.competition_of(answer)

    async def delete_competition(self, name: str, reason: str) -> None:
        await self.client.delete(f"competitions/{quote(name, safe='')}", {"reason": reason})

    def export_competition(self, name: str) -> AsyncGenerator[ExportPiece, None]:
        return export_pieces(self.client, "competitions", name)

    async def costs(self, days: int) -> CostReport:
        answer = await self.client.get("admin/costs", admin.CostsAnswer, {"days": days})
        return answer.report

    async def start_final(self, request: FinalRequest, reason: str) -> Sequence[Final]:
        body = {"board": request.board, "gpu": request.gpu, "top": request.top, "reason": reason}
        answer = await self.client.post("admin/finals", FinalsAnswer, body)
        with self.client.decoding():
            return decode.finals_of(answer)

    async def finals(self, board: str) -> Sequence[Final]:
        path = f"leaderboards/{quote(board, safe='')}/finals"
        answer = await self.client.get(path, FinalsAnswer)
        with self.client.decoding():
            return decode.finals_of(answer)

    async def cancel_final(self, board: str, reason: str) -> int:
        body = {"board": board, "reason": reason}
        path, kind = "admin/finals/cancel", FinalsCancelled
        return (await self.client.post(path, kind, body)).cancelled

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
            return None  # the command that watches it retries, with a limit
        gpus = [
            show_target(each.gpu, each.pool) for each in found.jobs if each.gpu in found.unserved
        ]
        return f"no connected worker offers {', '.join(gpus)} there now" if gpus else None

    async def worker_hint(self) -> str | None:
        workers, _ = await self.workers()
        return None if workers else f"{self.client.url} has no connected worker"

    def after_exit(self) -> str:
        return f"continues at {self.client.url}"


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
    client: requests.ApiClient, kind: str, name: str
) -> AsyncGenerator[ExportPiece, None]:
    """Yield the pieces of an export, its end included; SetupError when it is incomplete.

    `kind` is `leaderboards`, or `competitions`, whose export contains those of its boards.
    """
    path, open_parts = f"{kind}/{quote(name, safe='')}/export", 0
    async with aclosing(client.lines(path, within_s=CHUNK_S)) as lines:
        async for line in lines:
            with client.decoding():
                piece = PIECE.validate_json(line)
            yield piece
            open_parts += isinstance(piece, ExportCompetition | ExportHead)
            if isinstance(piece, ExportEnd):
                open_parts -= 1
                if open_parts <= 0:
                    return
    raise SetupError(f"{client.url}: the export is incomplete; run the command again")

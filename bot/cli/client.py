"""One person's client of Podium, on this machine or at a remote server."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from bot.domain.api.export import ExportEnd, ExportPiece
from bot.domain.board import Board, Viewer
from bot.domain.competition import Competition, CompetitionStandings
from bot.domain.costs import CostReport
from bot.domain.errors import StoreError, UserError
from bot.domain.finals import Final, FinalRequest
from bot.domain.ids import SubmissionId
from bot.domain.job import Worker
from bot.domain.leaderboard import BoardStandings
from bot.domain.publication import Draft, PublishedDraft
from bot.domain.records import HistoryEntry, StoredFile
from bot.domain.status import SubmissionStatus
from bot.domain.submission import SubmissionRequest
from bot.domain.tasks.template import template_of
from bot.reports.competition import competition_pieces
from bot.reports.export import pieces
from bot.services import (
    boards,
    competitions,
    finals,
    history,
    lookup,
    moderation,
    operations,
    standings,
)
from bot.services.publishing.pipeline import Pipeline
from bot.services.publishing.queued_runner import command_publication, has_workers, queued_runners
from bot.services.status import profile_files, submission_status, unserved_in_words, watch
from bot.services.submissions import RerunRequest, cancel, rerun, submit
from runners.contract.task import Mode

if TYPE_CHECKING:
    from bot.app.context import OpenPodium
    from bot.app.installation import Installation
    from bot.app.servers import Say

_CHECKS_PER_LEASE = 15
"""How many times per lease of a worker a command checks whether a worker is live."""


class Client(Protocol):
    """The requests that commands make to Podium, here or at a server, for one person.

    Its methods raise UserError for the person's errors, and StoreError while Podium is unavailable.
    """

    @property
    def poll_s(self) -> float:
        """Return the seconds between two checks for a worker that could judge."""

    @property
    def suffix(self) -> str:
        """Return the option with which the next command uses the same Podium: ` --server URL`."""

    async def whoami(self) -> str:
        """Return the person's name."""

    async def submit(
        self, file_name: str, content: bytes, mode: Mode, *, board: str | None, gpus: Sequence[str]
    ) -> SubmissionId:
        """Submit a file. Its header names the board or GPU types that are not given."""

    async def rerun(self, number: SubmissionId, mode: Mode | None) -> SubmissionId:
        """Submit the source of an earlier submission again, perhaps in another mode."""

    async def cancel(self, number: SubmissionId, reason: str | None) -> int:
        """Stop a submission; return how many unfinished jobs it had. Admins may give a reason."""

    async def withdraw(self, number: SubmissionId, reason: str) -> None:
        """Take a submission off its board permanently; its result stays."""

    async def status(self, number: SubmissionId) -> SubmissionStatus:
        """Return the current status of a submission."""

    def watch(self, number: SubmissionId) -> AsyncIterator[SubmissionStatus]:
        """Yield the status now and after each change, up to the final one."""

    async def files(self, number: SubmissionId) -> Sequence[StoredFile]:
        """Return the profiler's reports of a submission."""

    async def boards(self) -> Sequence[Board]:
        """Return the boards that this person may see, by name."""

    async def standings(
        self, board: str, gpu: str | None, version: int | None
    ) -> Sequence[BoardStandings]:
        """Return the leaderboards of a board, by default of its current task version."""

    async def template(self, board: str, language: str | None) -> bytes:
        """Return a board's template of a language, by default the first; UserError without one."""

    async def history(self, board: str | None, limit: int) -> Sequence[HistoryEntry]:
        """Return the person's own submissions, newest first."""

    async def publish(
        self, drafts: Sequence[Draft], say: "Say", *, unchecked: bool
    ) -> Sequence[PublishedDraft]:
        """Check tasks and publish them, as this person even if a draft names another one.

        UserError if one must not be published. With `unchecked` no task is checked.
        """

    def export(self, board: str) -> AsyncGenerator[ExportPiece, None]:
        """Yield the export of a board, from its head to its end."""

    async def competitions(self) -> Sequence[Competition]:
        """Return the competitions that this person may see, by name."""

    async def competition(self, name: str) -> CompetitionStandings:
        """Return a competition with its overall ranking."""

    async def close_competition(self, name: str) -> Competition:
        """Close every open board of this person's competition now."""

    async def extend_competition(self, name: str, until: datetime) -> Competition:
        """Move the deadlines of its boards that are before `until` to `until`."""

    async def delete_competition(self, name: str, reason: str) -> None:
        """Delete this person's competition; its boards stay."""

    def export_competition(self, name: str) -> AsyncGenerator[ExportPiece, None]:
        """Yield the export of a competition: its ranking, then the export of each board."""

    async def costs(self, days: int) -> CostReport:
        """Return who used how much GPU time on the last days; only for admins."""

    async def start_final(self, request: FinalRequest, reason: str) -> Sequence[Final]:
        """Start a final on each GPU type of a board, or on one; only for admins."""

    async def finals(self, board: str) -> Sequence[Final]:
        """Return the newest final of each GPU type of a board."""

    async def cancel_final(self, board: str, reason: str) -> int:
        """Cancel the running finals of a board; return how many."""

    async def workers(self) -> tuple[Sequence[Worker], datetime]:
        """Return the live workers, and the current time of the Podium that they work for."""

    def judging(self, say: "Say") -> AbstractAsyncContextManager[None]:
        """Judge in this process until the block ends, unless other processes judge this queue."""

    async def obstacle(self, number: SubmissionId) -> str | None:
        """Return why no worker can judge a submission and what to do; None if one can."""

    async def worker_hint(self) -> str | None:
        """Return how to start a worker, or which server needs one; None if there is one."""

    def after_exit(self) -> str:
        """Return what a submission does after its command has exited: `continues at URL`."""


@dataclass(frozen=True, slots=True)
class LocalClient:
    """The client of this machine's Podium, with the rights of `viewer`."""

    installation: "Installation"
    podium: "OpenPodium"
    viewer: Viewer
    name: str = ""
    suffix: str = ""

    @property
    def poll_s(self) -> float:
        return max(0.2, self.podium.lease_s / _CHECKS_PER_LEASE)

    async def whoami(self) -> str:
        return self.name

    async def submit(
        self, file_name: str, content: bytes, mode: Mode, *, board: str | None, gpus: Sequence[str]
    ) -> SubmissionId:
        request = SubmissionRequest(self.viewer, file_name, content, mode, board, tuple(gpus))
        return (await submit(self.podium.store, self.podium.clock, request)).id

    async def rerun(self, number: SubmissionId, mode: Mode | None) -> SubmissionId:
        request = RerunRequest(self.viewer, number, mode)
        return (await rerun(self.podium.store, self.podium.clock, request)).id

    async def cancel(self, number: SubmissionId, reason: str | None) -> int:
        if reason is None:
            return await cancel(self.podium.store, self.viewer, number)
        if not self.viewer.sees_all:
            raise UserError("not-allowed", "only an admin may cancel another person's submission")
        decision = moderation.Decision(self.viewer.person, reason)
        return await moderation.cancel(self.podium.store, decision, number)

    async def withdraw(self, number: SubmissionId, reason: str) -> None:
        await moderation.withdraw(self.podium.store, self.viewer, reason, number)

    async def status(self, number: SubmissionId) -> SubmissionStatus:
        return await submission_status(self.podium.store, number)

    async def watch(self, number: SubmissionId) -> AsyncIterator[SubmissionStatus]:
        async for status in watch(self.podium.store, number):
            yield status

    async def files(self, number: SubmissionId) -> Sequence[StoredFile]:
        status = await submission_status(self.podium.store, number)
        return await profile_files(self.podium.store, status.submission)

    async def boards(self) -> Sequence[Board]:
        return await lookup.visible_boards(self.podium.store, self.viewer)

    async def standings(
        self, board: str, gpu: str | None, version: int | None
    ) -> Sequence[BoardStandings]:
        return await standings.board_standings(
            self.podium.store, self.viewer, board, gpu, version=version
        )

    async def template(self, board: str, language: str | None) -> bytes:
        found, task = await lookup.task_of(self.podium.store, self.viewer, board)
        return template_of(task, found.name, language).content

    async def history(self, board: str | None, limit: int) -> Sequence[HistoryEntry]:
        return await history.submission_history(self.podium.store, self.viewer, board, limit=limit)

    async def publish(
        self, drafts: Sequence[Draft], say: "Say", *, unchecked: bool
    ) -> Sequence[PublishedDraft]:
        own = [
            replace(each, request=replace(each.request, person=self.viewer.person))
            for each in drafts
        ]
        async with self._pipeline(say) as pipeline:
            return await pipeline.check_and_publish(own, unchecked=unchecked)

    @asynccontextmanager
    async def _pipeline(self, say: "Say") -> AsyncIterator[Pipeline]:
        """Yield a pipeline that checks on the live workers or, without any, on this machine."""
        store, clock = self.podium.store, self.podium.clock
        if await has_workers(store):
            async with command_publication(store, self.viewer.person) as publication:
                find = partial(queued_runners, store, publication, resumed=False)
                yield Pipeline(store, clock, (), say, find_runners=find)
            return
        async with self.installation.runners() as runners:
            yield Pipeline(store, clock, runners, say)

    async def export(self, board: str) -> AsyncGenerator[ExportPiece, None]:
        store = self.podium.store
        found = await boards.export_board(store, self.viewer, board)
        async with (
            aclosing(boards.exported_evaluations(store, found)) as evaluations,
            aclosing(boards.exported_sources(store, found)) as sources,
            aclosing(pieces(found, evaluations, sources)) as whole,
        ):
            async for piece in whole:
                yield piece

    async def competitions(self) -> Sequence[Competition]:
        store, clock = self.podium.store, self.podium.clock
        return await competitions.visible_competitions(store, clock, self.viewer)

    async def competition(self, name: str) -> CompetitionStandings:
        store, clock = self.podium.store, self.podium.clock
        return await competitions.competition_standings(store, clock, self.viewer, name)

    async def close_competition(self, name: str) -> Competition:
        store, clock = self.podium.store, self.podium.clock
        return await competitions.close_competition(store, clock, self.viewer, name)

    async def extend_competition(self, name: str, until: datetime) -> Competition:
        store, clock = self.podium.store, self.podium.clock
        return await competitions.extend_competition(store, clock, self.viewer, name, until=until)

    async def delete_competition(self, name: str, reason: str) -> None:
        store, clock = self.podium.store, self.podium.clock
        await competitions.delete_competition(store, clock, self.viewer, name, reason=reason)

    async def export_competition(self, name: str) -> AsyncGenerator[ExportPiece, None]:
        found = await self.competition(name)
        for piece in competition_pieces(found):
            yield piece
        for board in found.competition.boards:
            async with aclosing(self.export(board.name)) as whole:
                async for piece in whole:
                    yield piece
        yield ExportEnd()

    async def costs(self, days: int) -> CostReport:
        return await operations.costs(self.podium.store, self.podium.clock, days)

    async def start_final(self, request: FinalRequest, reason: str) -> Sequence[Final]:
        decision = moderation.Decision(self.viewer.person, reason)
        return await finals.start_final(self.podium.store, self.viewer, decision, request)

    async def finals(self, board: str) -> Sequence[Final]:
        return await finals.finals_of(self.podium.store, self.viewer, board)

    async def cancel_final(self, board: str, reason: str) -> int:
        decision = moderation.Decision(self.viewer.person, reason)
        return await finals.cancel_final(self.podium.store, self.viewer, decision, board)

    async def workers(self) -> tuple[Sequence[Worker], datetime]:
        return await self.podium.store.workers.alive(), self.podium.clock.now()

    @asynccontextmanager
    async def judging(self, say: "Say") -> AsyncIterator[None]:
        if self.podium.served or self.podium.shared:
            yield
            return
        say("`podium up` is not running here, so this command judges the submission itself")
        async with self.installation.working_in_turn(self.podium):
            yield

    async def obstacle(self, number: SubmissionId) -> str | None:
        if self.podium.served and not self.installation.is_served():
            return "`podium up` stopped before it judged the submission; start it again"
        try:
            gpus = await unserved_in_words(self.podium.store, number)
        except StoreError:
            return None  # the next command waits for the database, with a limit
        if not gpus:
            return None
        return (
            f"no connected worker offers {', '.join(gpus)}; run {self._worker_command} on a "
            "machine that has it"
        )

    async def worker_hint(self) -> str | None:
        if self.podium.served or await self.podium.store.workers.alive():
            return None
        return f"start {self._worker_command}"

    def after_exit(self) -> str:
        return f"{'continues in' if self.podium.served else 'waits for'} {self._worker_command}"

    @property
    def _worker_command(self) -> str:
        return "`podium worker`" if self.podium.shared and not self.podium.served else "`podium up`"

"""What a command asks of Podium for one person, on this machine or at a server elsewhere."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.api.exports import ExportPiece
from bot.domain.board import Board
from bot.domain.ids import SubmissionId
from bot.ports import StoredFile, Worker
from bot.services.history import HistoryEntry
from bot.services.publishing.pipeline import Draft, Released
from bot.services.standings import BoardStandings
from bot.services.status import SubmissionStatus
from runners.contract.task import Mode

Say = Callable[[str], None]
"""Tells a person a line, apart from the results."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Who has signed in to which server."""

    url: str
    name: str


class Client(Protocol):
    """One person's way to Podium; every deed is this person's.

    UserError for what the person should change, StoreError while Podium is away.
    """

    @property
    def look_s(self) -> float:
        """How often who waits may look whether anybody could judge."""
        ...

    @property
    def suffix(self) -> str:
        """What a further command needs to come here too, such as ` --server URL`."""
        ...

    async def whoami(self) -> str:
        """The person's name."""
        ...

    async def submit(
        self, file_name: str, content: bytes, mode: Mode, *, board: str | None, gpus: Sequence[str]
    ) -> SubmissionId:
        """Hand a file in; without a board or GPU types its heading names them."""
        ...

    async def rerun(self, number: SubmissionId, mode: Mode | None) -> SubmissionId:
        """Hand an earlier submission's source in again, perhaps in another mode."""
        ...

    async def cancel(self, number: SubmissionId) -> int:
        """Stop a submission; gives how many of its jobs had not ended."""
        ...

    async def withdraw(self, number: SubmissionId, reason: str) -> None:
        """Take a submission off its board for good; its result stays."""
        ...

    async def status(self, number: SubmissionId) -> SubmissionStatus:
        """Where a submission stands now."""
        ...

    def watch(self, number: SubmissionId) -> AsyncIterator[SubmissionStatus]:
        """The status now and whenever it has changed, up to the final one."""
        ...

    async def files(self, number: SubmissionId) -> Sequence[StoredFile]:
        """The profiler's reports of a submission."""
        ...

    async def boards(self) -> Sequence[Board]:
        """The boards that there are for this person, by name."""
        ...

    async def standings(
        self, board: str, gpu: str | None, version: int | None
    ) -> Sequence[BoardStandings]:
        """The leaderboards of a board, of its present task version unless told otherwise."""
        ...

    async def template(self, board: str, language: str | None) -> bytes:
        """A board's template of a language, else its first; UserError where there is none."""
        ...

    async def history(self, board: str | None, limit: int) -> Sequence[HistoryEntry]:
        """The person's own submissions, newest first."""
        ...

    async def publish(
        self, drafts: Sequence[Draft], say: Say, *, unchecked: bool
    ) -> Sequence[Released]:
        """Put tasks on their boards, each proven first; whoever a draft names, it is this person.

        UserError where one must not be published; `unchecked` takes the person's word instead.
        """
        ...

    def export(self, board: str) -> AsyncGenerator[ExportPiece, None]:
        """Everything of a board, from the head of the export to its end."""
        ...

    async def workers(self) -> tuple[Sequence[Worker], datetime]:
        """Who judges now, and what the time is there."""
        ...

    def attending(self, say: Say) -> AbstractAsyncContextManager[None]:
        """Until left, judges here what is waited for where nobody else is to do so."""
        ...

    async def lack(self, number: SubmissionId) -> str | None:
        """Why nobody would judge it as things are, and what to do; None when somebody will."""
        ...

    async def idle(self) -> str | None:
        """What has to be started before anything is judged at all; None when somebody judges."""
        ...

    def keeper(self) -> str:
        """What becomes of a submission which nobody waits for, such as `stays with URL`."""
        ...


class Servers(Protocol):
    """Podiums elsewhere: which one a command is for, the way there, and the logins."""

    def chosen(self, url: str | None) -> str | None:
        """The server that a command is for: this one, that of the settings or that of the login.

        None where it is for this machine: there is none, the settings name a data folder or a
        database, or the URL is `local`.
        """
        ...

    def client_of(self, url: str, say: Say, *, named: bool) -> AbstractAsyncContextManager[Client]:
        """A person's way to a server, with the token of the settings or of the login there.

        `named` says that the command named the server, as further ones must; `say` is told when
        the server is away for a while. UserError for an address to which nothing should be sent.
        """
        ...

    async def login(
        self, url: str, token: str | None, ask: Callable[[], str], *, plain_http: bool
    ) -> Signed:
        """Check a token at a server and keep both: this one, the settings', or one asked for.

        UserError when the server refuses the token, SetupError when it cannot be reached.
        """
        ...

    def logout(self, url: str | None) -> Signed:
        """Forget the login at a server, else the one that commands go to; UserError without one."""
        ...

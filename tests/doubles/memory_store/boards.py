"""Boards and task versions in memory."""

from dataclasses import replace
from datetime import datetime

from bot.domain.board import (
    Access,
    Board,
    InviteLink,
    NewBoard,
    NewInviteLink,
    Pins,
    SeasonRules,
    TaskVersion,
)
from bot.domain.errors import StoreError, board_moved
from bot.domain.ids import BoardId, InviteLinkId, TaskVersionId
from bot.domain.job import FINAL_STATES
from bot.store.errors import board_exists, require_number
from bot.store.postgres.database import storable
from runners.contract.task import Grader, TaskDefinition
from tests.doubles.memory_store.tables import Tables


class MemoryBoards:
    """Boards by name, each with the versions of its task."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def publish(self, board: NewBoard, task: TaskDefinition, digest: str) -> Board:
        if await self.find(board.name) is not None:
            raise board_exists(board.name)
        stored = Board(
            id=BoardId(self._tables.next_id()),
            name=board.name,
            gpus=board.gpus,
            deadline=board.deadline,
            creator=board.creator,
            task_version=TaskVersionId(self._tables.next_id()),
            created_at=self._tables.clock.now(),
            access=board.access,
            pins=board.pins,
            rules=board.rules,
            grader=board.grader,
        )
        self._tables.boards[stored.id] = stored
        self._tables.versions[stored.task_version] = TaskVersion(
            stored.task_version, stored.id, 1, digest, task, stored.created_at
        )
        return self._now(stored)

    async def add_version(
        self,
        board: BoardId,
        task: TaskDefinition,
        digest: str,
        onto: TaskVersionId | None = None,
    ) -> TaskVersion:
        stored = self._existing(board)
        if onto is not None and stored.task_version != onto:
            raise board_moved(stored.name)
        versions = await self.versions(board)
        version = next((known for known in versions if known.digest == digest), None)
        if version is None:
            version = TaskVersion(
                TaskVersionId(self._tables.next_id()),
                board,
                versions[-1].number + 1,
                digest,
                task,
                self._tables.clock.now(),
            )
            self._tables.versions[version.id] = version
        self._tables.boards[board] = replace(stored, task_version=version.id)
        return version

    async def delete(self, board: BoardId, submissions: int | None = None) -> bool:
        if board not in self._tables.boards:
            return False
        made = [each.id for each in self._tables.submissions.values() if each.board == board]
        require_number(made, submissions)
        self._tables.forget_board(board)
        return True

    async def configure(
        self, board: BoardId, gpus: tuple[str, ...], deadline: datetime | None
    ) -> Board:
        return self._change(board, gpus=gpus, deadline=deadline)

    async def pin(self, board: BoardId, pins: Pins) -> Board:
        before = self._existing(board)
        pinned = self._change(board, pins=pins)
        for job in list(self._tables.jobs.values()):
            on_board = self._tables.submissions[job.submission].board == board
            if on_board and job.state not in FINAL_STATES:
                self._tables.jobs[job.id] = replace(job, pool=pinned.pool_for(job.gpu, job.mode))
                self._tables.announce(job.gpu)
        for gpu, _ in set(before.pins) ^ set(pins):
            row = self._tables.references.get((pinned.task_version, gpu))
            if row is not None and row.value is not None:
                del self._tables.references[pinned.task_version, gpu]
        return pinned

    async def set_rules(self, board: BoardId, rules: SeasonRules) -> Board:
        return self._change(board, rules=rules)

    async def choose_grader(self, board: BoardId, grader: Grader | None) -> Board:
        return self._change(board, grader=grader)

    async def restrict(self, board: BoardId, access: Access) -> Board:
        guests = self._existing(board).access.guests
        return self._change(board, access=replace(access, guests=guests))

    async def invite(self, board: BoardId, guests: frozenset[str]) -> Board:
        access, added = self._existing(board).access, frozenset(map(storable, guests))
        return self._change(board, access=replace(access, guests=access.guests | added))

    async def uninvite(self, board: BoardId, guests: frozenset[str]) -> Board:
        access, removed = self._existing(board).access, frozenset(map(storable, guests))
        return self._change(board, access=replace(access, guests=access.guests - removed))

    def _change(self, board: BoardId, **changes: object) -> Board:
        changed = replace(self._existing(board), **changes)  # type: ignore[arg-type]
        self._tables.boards[board] = changed
        return self._now(changed)

    def _now(self, board: Board) -> Board:
        return replace(board, rules=board.rules.at(self._tables.clock.now()))

    async def find(self, name: str) -> Board | None:
        found = (board for board in self._tables.boards.values() if board.name == name)
        return next(map(self._now, found), None)

    async def get(self, board: BoardId) -> Board | None:
        found = self._tables.boards.get(board)
        return None if found is None else self._now(found)

    async def all(self) -> tuple[Board, ...]:
        shown = (self._now(board) for board in self._tables.boards.values() if not board.is_hidden)
        return tuple(sorted(shown, key=lambda board: board.name))

    async def version(self, version: TaskVersionId) -> TaskVersion | None:
        return self._tables.versions.get(version)

    async def versions(self, board: BoardId) -> tuple[TaskVersion, ...]:
        found = [one for one in self._tables.versions.values() if one.board == board]
        return tuple(sorted(found, key=lambda version: version.number))

    def _existing(self, board: BoardId) -> Board:
        found = self._tables.boards.get(board)
        if found is None:
            raise StoreError(f"there is no board with id {board}")
        return found


class MemoryInviteLinks:
    """Links by which people join private boards, by digest."""

    def __init__(self, tables: Tables, boards: MemoryBoards) -> None:
        self._tables = tables
        self._boards = boards
        self._links: dict[str, InviteLink] = {}

    async def add(self, link: NewInviteLink) -> InviteLink:
        number, now = InviteLinkId(self._tables.next_id()), self._tables.clock.now()
        added = InviteLink(number, link.board, link.most, 0, now, link.expires_at)
        self._links[link.digest] = added
        return added

    async def of(self, board: BoardId) -> tuple[InviteLink, ...]:
        return tuple(each for each in self._valid().values() if each.board == board)

    async def revoke(self, board: BoardId, link: InviteLinkId) -> bool:
        found = [digest for digest, each in self._valid().items() if each.id == link]
        for digest in found:
            if self._links[digest].board == board:
                del self._links[digest]
                return True
        return False

    async def find(self, digest: str) -> InviteLink | None:
        return self._valid().get(digest)

    async def use(self, digest: str, identity: str) -> BoardId | None:
        link = await self.find(digest)
        board = None if link is None else await self._boards.get(link.board)
        if link is None or board is None:
            return None
        uses = link.uses + (storable(identity) not in board.access.guests)
        if uses > link.most:
            return None
        self._links[digest] = replace(link, uses=uses)
        await self._boards.invite(link.board, frozenset({identity}))
        return link.board

    def _valid(self) -> dict[str, InviteLink]:
        now = self._tables.clock.now()
        boards = self._tables.boards
        return {
            digest: each
            for digest, each in self._links.items()
            if each.expires_at > now and each.board in boards
        }

"""Boards and task versions in Postgres."""

import json
from datetime import datetime

import asyncpg

from bot.domain.board import (
    Access,
    Board,
    InviteLink,
    NewBoard,
    NewInviteLink,
    Pins,
    SeasonRules,
    SourceVisibility,
    TaskVersion,
    Visibility,
)
from bot.domain.errors import StoreError, board_moved
from bot.domain.ids import BoardId, InviteLinkId, PersonId, TaskVersionId
from bot.ports import Clock
from bot.store.errors import board_exists, require_number
from bot.store.postgres.database import Connection, Database, query, storable
from runners.contract.task import Grader, TaskDefinition

_OF_VERSIONS = ("boards.drop_entrants", "boards.drop_leaderboards", "boards.drop_references")
OF_SUBMISSIONS = (
    "boards.drop_untold",
    "boards.drop_scores",
    "boards.drop_files",
    "boards.drop_evaluations",
    "boards.drop_events",
    "boards.drop_jobs",
    "boards.drop_displays",
    "boards.drop_exclusions",
    "boards.drop_keys",
    "boards.drop_submissions",
)
"""The queries that delete submissions, in this order."""
_OF_BOARD = (
    "boards.drop_outbox",
    "boards.drop_limits",
    "competitions.drop_board",
    "boards.unset_version",
    "boards.drop_versions",
    "boards.drop",
)


class PostgresBoards:
    """Boards by name, each with the versions of its task."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def publish(self, board: NewBoard, task: TaskDefinition, digest: str) -> Board:
        async with self._database.transaction() as connection:
            try:
                added = await connection.fetchval(
                    query("boards.add"),
                    board.name,
                    board.gpus,
                    board.deadline,
                    board.creator,
                    self._clock.now(),
                    *_rule(board.access),
                    list(board.access.guests),
                    _pools(board.pins),
                    board.rules.opens_at,
                    board.rules.late_runs,
                    board.grader and board.grader.value,
                )
            except asyncpg.UniqueViolationError as error:
                raise board_exists(board.name) from error
            _, stored = await self._use(connection, BoardId(added), task, digest)
        return self._board(stored)

    async def add_version(
        self, board: BoardId, task: TaskDefinition, digest: str, onto: TaskVersionId | None = None
    ) -> TaskVersion:
        async with self._database.transaction() as connection:
            locked = await connection.fetchrow(query("boards.lock"), board)
            if locked is None:
                raise _unknown(board)
            if onto is not None and locked["task_version"] != onto:
                raise board_moved(locked["name"])
            version, _ = await self._use(connection, board, task, digest)
        return _task_version(version)

    async def configure(
        self, board: BoardId, gpus: tuple[str, ...], deadline: datetime | None
    ) -> Board:
        return await self._changed("boards.configure", board, gpus, deadline)

    async def pin(self, board: BoardId, pins: Pins) -> Board:
        async with self._database.transaction() as connection:
            before = await connection.fetchrow(query("boards.get_locked"), board)
            row = await connection.fetchrow(query("boards.pin"), board, _pools(pins))
            if before is None or row is None:
                raise _unknown(board)
            changed = [gpu for gpu, _ in set(self._board(before).pins) ^ set(pins)]
            await connection.execute(query("boards.pin_jobs"), board)
            await connection.execute(query("boards.time_again"), board, changed)
        return self._board(row)

    async def set_rules(self, board: BoardId, rules: SeasonRules) -> Board:
        return await self._changed("boards.set_rules", board, rules.opens_at, rules.late_runs)

    async def choose_grader(self, board: BoardId, grader: Grader | None) -> Board:
        return await self._changed("boards.choose_grader", board, grader and grader.value)

    async def restrict(self, board: BoardId, access: Access) -> Board:
        return await self._changed("boards.restrict", board, *_rule(access))

    async def invite(self, board: BoardId, guests: frozenset[str]) -> Board:
        return await self._changed("boards.invite", board, list(map(storable, guests)))

    async def uninvite(self, board: BoardId, guests: frozenset[str]) -> Board:
        return await self._changed("boards.uninvite", board, list(map(storable, guests)))

    async def _changed(self, name: str, board: BoardId, *values: object) -> Board:
        row = await self._database.row(name, board, *values)
        if row is None:
            raise _unknown(board)
        return self._board(row)

    async def delete(self, board: BoardId, submissions: int | None = None) -> bool:
        async with self._database.transaction() as connection:
            if await connection.fetchval(query("boards.lock_whole"), board) is None:
                return False
            await connection.execute(query("boards.lock_jobs"), board)
            found = await connection.fetch(query("boards.lock_submissions"), board)
            ids = [row["id"] for row in found]
            require_number(ids, submissions)
            for name in _OF_VERSIONS:
                await connection.execute(query(name), board)
            for name in OF_SUBMISSIONS:
                await connection.execute(query(name), ids)
            for name in _OF_BOARD:
                await connection.execute(query(name), board)
        return True

    async def find(self, name: str) -> Board | None:
        row = await self._database.row("boards.find", name)
        return None if row is None else self._board(row)

    async def get(self, board: BoardId) -> Board | None:
        row = await self._database.row("boards.get", board)
        return None if row is None else self._board(row)

    async def all(self) -> tuple[Board, ...]:
        return tuple(map(self._board, await self._database.rows("boards.all")))

    async def version(self, version: TaskVersionId) -> TaskVersion | None:
        row = await self._database.row("boards.version", version)
        return None if row is None else _task_version(row)

    async def versions(self, board: BoardId) -> tuple[TaskVersion, ...]:
        found = await self._database.rows("boards.versions", board)
        return tuple(_task_version(row) for row in found)

    def _board(self, row: asyncpg.Record) -> Board:
        return board_of(row, self._clock.now())

    async def _use(
        self, connection: Connection, board: BoardId, task: TaskDefinition, digest: str
    ) -> tuple[asyncpg.Record, asyncpg.Record]:
        """Make the task the board's current version; return the rows of version and board."""
        now = self._clock.now()
        definition = task.model_dump_json()
        await connection.execute(query("boards.add_version"), board, digest, definition, now)
        version = await connection.fetchrow(query("boards.version_of_digest"), board, digest)
        if version is None:
            raise StoreError(f"the task version {digest} could not be stored")
        stored = await connection.fetchrow(query("boards.use_version"), board, version["id"])
        if stored is None:
            raise _unknown(board)
        return version, stored


class PostgresInviteLinks:
    """Links by which people join private boards, by digest."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, link: NewInviteLink) -> InviteLink:
        values = link.board, link.creator, link.digest, link.most
        now = self._clock.now()
        row = await self._database.row("invites.add", *values, now, link.expires_at)
        if row is None:
            raise StoreError("the invite link could not be stored")
        return _invite_link(row)

    async def of(self, board: BoardId) -> tuple[InviteLink, ...]:
        rows = await self._database.rows("invites.of", board, self._clock.now())
        return tuple(map(_invite_link, rows))

    async def revoke(self, board: BoardId, link: InviteLinkId) -> bool:
        row = await self._database.row("invites.revoke", board, link, self._clock.now())
        return row is not None

    async def find(self, digest: str) -> InviteLink | None:
        row = await self._database.row("invites.find", digest, self._clock.now())
        return None if row is None else _invite_link(row)

    async def use(self, digest: str, identity: str) -> BoardId | None:
        link = await self.find(digest)
        if link is None:
            return None
        async with self._database.transaction() as connection:
            board = await connection.fetchrow(query("boards.get_locked"), link.board)
            if board is None:
                return None
            guest = storable(identity)
            counts = int(guest not in board["guests"])
            values = digest, self._clock.now(), counts
            if await connection.fetchrow(query("invites.use"), *values) is None:
                return None
            if counts:
                await connection.execute(query("boards.invite"), link.board, [guest])
        return link.board


def _invite_link(row: asyncpg.Record) -> InviteLink:
    """Convert a row of `invite_links`."""
    number, board = InviteLinkId(row["id"]), BoardId(row["board"])
    return InviteLink(number, board, row["most"], row["uses"], row["created_at"], row["expires_at"])


def _rule(access: Access) -> tuple[str, str | None, str]:
    """Return the columns of an access rule, without its guests."""
    return access.visibility.value, access.house, access.source.value


def _pools(pins: Pins) -> str:
    """Return the pins as their column stores them."""
    return json.dumps(dict(pins))


def _unknown(board: BoardId) -> StoreError:
    return StoreError(f"there is no board with id {board}")


def board_of(row: asyncpg.Record, now: datetime) -> Board:
    """Convert a row of `boards` as of the aware time `now`."""
    return Board(
        id=BoardId(row["id"]),
        name=row["name"],
        gpus=tuple(row["gpus"]),
        deadline=row["deadline"],
        creator=PersonId(row["creator"]),
        task_version=TaskVersionId(row["task_version"]),
        created_at=row["created_at"],
        access=Access(
            visibility=Visibility(row["visibility"]),
            house=row["house"],
            source=SourceVisibility(row["source_visibility"]),
            guests=frozenset(row["guests"]),
        ),
        pins=tuple(sorted(json.loads(row["pools"]).items())),
        rules=SeasonRules(row["opens_at"], row["late_runs"]).at(now),
        grader=row["grader"] and Grader(row["grader"]),
    )


def _task_version(row: asyncpg.Record) -> TaskVersion:
    """Convert a row of `task_versions`."""
    return TaskVersion(
        id=TaskVersionId(row["id"]),
        board=BoardId(row["board"]),
        number=row["number"],
        digest=row["digest"],
        definition=TaskDefinition.model_validate_json(row["definition"]),
        created_at=row["created_at"],
    )

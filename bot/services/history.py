"""Lists what a person has submitted, newest first, with how it ended on each GPU type."""

from bot.domain.access import Viewer
from bot.domain.board import Board, TaskVersion
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.lookup import find_board


async def history(
    store: Store,
    viewer: Viewer,
    board_name: str | None = None,
    *,
    before: SubmissionId | None = None,
    limit: int = 50,
) -> tuple[HistoryEntry, ...]:
    """The viewer's own submissions with ids below `before`, on one board or on all.

    What one has submitted stays one's own, also when its board is hidden from one since.
    """
    board = None if board_name is None else (await find_board(store, viewer, board_name)).id
    return await history_of(store, viewer.person, board, before=before, limit=limit)


async def history_of(
    store: Store,
    person: PersonId,
    board: BoardId | None = None,
    *,
    before: SubmissionId | None = None,
    limit: int = 50,
) -> tuple[HistoryEntry, ...]:
    """A person's submissions, whoever asks: the caller knows what of them may be shown."""
    lookup = _Lookup(store)
    found = await store.submissions.history(person, board, before, limit)
    results: dict[SubmissionId, list[JobResult]] = {each.id: [] for each in found}
    for outcome in await store.results.outcomes([each.id for each in found]):
        results[outcome.submission].append(outcome)
    return tuple([await lookup.entry(each, tuple(results[each.id])) for each in found])


class _Lookup:
    """Reads each board and task version of a list of submissions once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._boards: dict[BoardId, Board] = {}
        self._versions: dict[TaskVersionId, TaskVersion] = {}

    async def entry(self, submission: Submission, results: tuple[JobResult, ...]) -> HistoryEntry:
        version = await self._version(submission.task_version)
        board = await self._board(submission.board)
        return HistoryEntry(submission, board.name, version.number, results)

    async def _board(self, board: BoardId) -> Board:
        if board not in self._boards:
            found = await self._store.boards.get(board)
            if found is None:
                raise LookupError(f"board {board} of a submission is not there")
            self._boards[board] = found
        return self._boards[board]

    async def _version(self, version: TaskVersionId) -> TaskVersion:
        if version not in self._versions:
            found = await self._store.boards.version(version)
            if found is None:
                raise LookupError(f"task version {version} of a submission is not there")
            self._versions[version] = found
        return self._versions[version]

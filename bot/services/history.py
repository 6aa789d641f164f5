"""What a person has submitted, on one board or on all, and the results."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.accounts import Person
from bot.domain.board import Board, TaskVersion, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId, is_system_submission
from bot.domain.leaderboard import OwnStanding, PersonalBoard
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.lookup import find_board, visible_boards
from bot.services.standings import leaderboard
from runners.contract.task import Mode


async def submission_history(
    store: Store,
    viewer: Viewer,
    board_name: str | None = None,
    *,
    before: SubmissionId | None = None,
    limit: int = 50,
) -> tuple[HistoryEntry, ...]:
    """Return the viewer's own submissions with ids below `before`, on one board or on all.

    People keep their own submissions, even when the board has become hidden from them.
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
    """Return a person's submissions without checks: the caller decides what may be shown."""
    reader = _EntryReader(store)
    found = await store.submissions.history(person, board, before, limit)
    results: dict[SubmissionId, list[JobResult]] = {each.id: [] for each in found}
    for outcome in await store.results.outcomes([each.id for each in found]):
        results[outcome.submission].append(outcome)
    return tuple([await reader.entry(each, tuple(results[each.id])) for each in found])


class _EntryReader:
    """Reads each board and task version in a list of submissions once."""

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
                raise LookupError(f"board {board} of a submission is missing")
            self._boards[board] = found
        return self._boards[board]

    async def _version(self, version: TaskVersionId) -> TaskVersion:
        if version not in self._versions:
            found = await self._store.boards.version(version)
            if found is None:
                raise LookupError(f"task version {version} of a submission is missing")
            self._versions[version] = found
        return self._versions[version]


_PERSONAL_NEWEST = 200


async def personal_board(store: Store, viewer: Viewer, board_name: str) -> PersonalBoard:
    """Return the viewer's own standings and newest submissions on a board."""
    board = await find_board(store, viewer, board_name)
    found = [await own_standing(store, viewer.person, board, gpu) for gpu in board.gpus]
    past = await submission_history(store, viewer, board_name, limit=_PERSONAL_NEWEST)
    return PersonalBoard(board, tuple(each for each in found if each is not None), past)


async def own_standing(
    store: Store, person: PersonId, board: Board, gpu: str
) -> OwnStanding | None:
    """Return a person's standing on one GPU type; None without a score there."""
    entries = (await leaderboard(store, board.task_version, gpu)).entries
    standing = next((each for each in entries if each.score.person == person), None)
    if standing is None:
        return None
    own = await store.results.scores_of(person, board.task_version, gpu)
    reference = await store.references.of(board.task_version, gpu)
    known = None if reference is None else reference.value
    return OwnStanding(gpu, standing, len(entries), own, known)


_MOST_SHOWN = 100
_MOST_READ = 300


@dataclass(frozen=True, slots=True)
class PersonStanding:
    """A person's standing on one GPU type of a board."""

    board: Board
    own: OwnStanding


@dataclass(frozen=True, slots=True)
class PersonProfile:
    """A person's standings and submissions, newest first, on boards that the viewer sees.

    Other people see only the ranked submissions.
    """

    person: Person
    places: tuple[PersonStanding, ...]
    past: tuple[HistoryEntry, ...]
    own: bool


async def person_profile(store: Store, viewer: Viewer, person_id: PersonId) -> PersonProfile:
    """Return a profile; UserError `unknown-person` when the viewer may not know of the person."""
    person = await store.people.get(person_id)
    own = person_id == viewer.person
    boards = {each.id: each for each in await visible_boards(store, viewer)}
    found = [] if person is None else await _ranked(store, person_id, own=own)
    past = [each for each in found if own or _is_shown(each.submission, boards, viewer)]
    if person is None or not (own or past):
        raise UserError(
            "unknown-person", f"person {person_id} has no submissions on these leaderboards"
        )
    entered = [boards[each] for each in dict.fromkeys(entry.submission.board for entry in past)
              if each in boards]  # fmt: skip
    places = [
        PersonStanding(board, standing)
        for board in entered
        for gpu in board.gpus
        if (standing := await own_standing(store, person_id, board, gpu)) is not None
    ]
    return PersonProfile(person, tuple(places), tuple(past[:_MOST_SHOWN]), own)


def _is_shown(submission: Submission, boards: Mapping[BoardId, Board], viewer: Viewer) -> bool:
    """Apply the rule of `lookup.visible_submission` for submissions of the system itself."""
    board = boards.get(submission.board)
    if board is None:
        return False
    return board.belongs_to(viewer) or not is_system_submission(submission.id)


async def _ranked(store: Store, person: PersonId, *, own: bool) -> list[HistoryEntry]:
    found = await history_of(store, person, limit=_MOST_SHOWN if own else _MOST_READ)
    return [each for each in found if own or each.submission.mode is Mode.RANKED]

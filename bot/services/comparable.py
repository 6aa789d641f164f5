"""Names what a submission is likely to be compared with; nothing whose source is hidden is named.

Any other submission can be compared by its number: `compare` has the last word on who may.
"""

from dataclasses import dataclass

from bot.domain.access import NOBODY, Viewer
from bot.domain.board import Board
from bot.domain.ids import PersonId, SubmissionId, is_the_houses
from bot.domain.records import HistoryEntry
from bot.domain.score import Standing
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services.history import history_of
from bot.services.leaderboards import leaderboard
from bot.services.lookup import seen_submission
from bot.services.sources import shows_sources
from runners.contract.task import Mode

_NEWEST = 30
_FASTEST = 20


@dataclass(frozen=True, slots=True)
class Comparable:
    """Submissions to the same board, whose sources the viewer may read.

    `versions` are its own person's, newest first; `own` the viewer's, where that is somebody else;
    `others` the best of each further person, the fastest first.
    """

    versions: tuple[HistoryEntry, ...] = ()
    own: tuple[HistoryEntry, ...] = ()
    others: tuple[Standing, ...] = ()


async def comparable(
    store: Store, clock: Clock, viewer: Viewer, number: SubmissionId
) -> Comparable:
    """UserError `unknown-submission` where it does not exist for the viewer."""
    given = await seen_submission(store, viewer, number)
    board = await store.boards.get(given.board)
    if board is None:
        raise LookupError(f"board {given.board} of submission {number} is gone")
    is_own = given.person == viewer.person
    shown = board.visible_to(viewer) and shows_sources(board, clock)
    if not (is_own or shown):
        return Comparable()
    past = await _past(store, given.person, board, number)
    versions = tuple(each for each in past if is_own or each.submission.mode is Mode.RANKED)
    stranger = is_own or viewer.person == NOBODY
    own = () if stranger else await _past(store, viewer.person, board, number)
    others = await _fastest(store, viewer, given, board) if shown else ()
    return Comparable(versions, own, others)


async def _past(
    store: Store, person: PersonId, board: Board, number: SubmissionId
) -> tuple[HistoryEntry, ...]:
    """A person's newest submissions to the board, without the one that is compared."""
    past = await history_of(store, person, board.id, limit=_NEWEST)
    numbers = ((each.submission.id, each) for each in past)
    return tuple(each for other, each in numbers if other != number and not is_the_houses(other))


async def _fastest(
    store: Store, viewer: Viewer, given: Submission, board: Board
) -> tuple[Standing, ...]:
    """On the first of its GPU types, among those judged by the board's present task version."""
    entries = (await leaderboard(store, board.task_version, given.gpus[0])).entries
    listed = {given.person, viewer.person}
    found = [each for each in entries[: _FASTEST + len(listed)] if each.score.person not in listed]
    return tuple(found[:_FASTEST])

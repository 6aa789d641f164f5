"""What a person has submitted, with the results; a board's records and winning kernels."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bot.domain.accounts import Person
from bot.domain.board import Board, Viewer
from bot.domain.confirmation import ConfirmationState
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PersonId, SubmissionId, is_system_submission
from bot.domain.leaderboard import BoardStandings, OwnStanding, PersonalBoard, Season
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.scoring import Score, Standing, by_submission_time
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services.lookup import board_of, find_board, visible_boards
from bot.services.standings import board_standings, leaderboard, season, task_version
from bot.services.status import shows_sources


async def submission_history(
    store: Store,
    viewer: Viewer,
    board_name: str | None = None,
    *,
    before: SubmissionId | None = None,
    limit: int = 50,
) -> tuple[HistoryEntry, ...]:
    """Return the viewer's own submissions with ids below `before`, on one board or on all.

    People always see their own submissions, even after the board was hidden from them.
    """
    board = None if board_name is None else await find_board(store, viewer, board_name)
    return await history_of(store, viewer.person, board, before=before, limit=limit)


async def history_of(
    store: Store,
    person: PersonId,
    board: Board | None = None,
    *,
    before: SubmissionId | None = None,
    limit: int = 50,
) -> tuple[HistoryEntry, ...]:
    """Return a person's submissions without checks: the caller decides what may be shown."""
    number = None if board is None else board.id
    submissions = await store.submissions.history(person, number, before, limit)
    if not submissions:
        return ()
    results: dict[SubmissionId, list[JobResult]] = {each.id: [] for each in submissions}
    told, outcomes = await asyncio.gather(
        store.confirmations.concerning(list(results)), store.results.outcomes(list(results))
    )
    compared = {(each.submission, each.gpu): each.state for each in told}
    lost = {(each.rival, each.gpu): each.submission for each in told
            if each.state is ConfirmationState.CONFIRMED}  # fmt: skip
    for outcome in outcomes:
        key = outcome.submission, outcome.gpu
        told_of = replace(outcome, confirmation=compared.get(key), lost_to=lost.get(key))
        results[outcome.submission].append(told_of)
    firsts = {each.board: each for each in submissions}
    names = {key: (board or await board_of(store, each)).name for key, each in firsts.items()}
    return tuple(
        [
            HistoryEntry(
                submission,
                names[submission.board],
                (await task_version(store, submission.task_version)).number,
                tuple(results[submission.id]),
            )
            for submission in submissions
        ]
    )


_PERSONAL_NEWEST = 200
"""The most submissions listed on a person's page of one board."""


async def personal_board(store: Store, viewer: Viewer, board_name: str) -> PersonalBoard:
    """Return the viewer's own standings and newest submissions on a board."""
    board = await find_board(store, viewer, board_name)
    standings = [await own_standing(store, viewer.person, board, gpu) for gpu in board.gpus]
    past = await submission_history(store, viewer, board_name, limit=_PERSONAL_NEWEST)
    return PersonalBoard(board, tuple(each for each in standings if each is not None), past)


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
    shared = sum(each.rank == standing.rank for each in entries) > 1
    ahead = next((each for each in reversed(entries) if each.rank < standing.rank), None)
    return OwnStanding(gpu, standing, len(entries), own, known, shared, ahead)


_MOST_SHOWN = 100
"""The most submissions of a profile."""
_MOST_READ = 300
"""The most submissions of another person that are read to find those to show."""


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
    standings: tuple[PersonStanding, ...]
    past: tuple[HistoryEntry, ...]
    own: bool

    @property
    def best_first(self) -> tuple[PersonStanding, ...]:
        """Return the standings by rank; among equal ranks, those with more people first."""

        def order(place: PersonStanding) -> tuple[int, int]:
            return place.own.standing.rank, -place.own.entries

        return tuple(sorted(self.standings, key=order))

    def top_places(self, now: datetime, *, closed: bool) -> tuple[int, int, int]:
        """Return how many first, second and third places the person has on closed or open boards.

        On closed boards they are medals; on open ones they can still be lost.
        """
        held = [one.own.standing.rank for one in self.standings if one.board.is_open(now) != closed]
        return held.count(1), held.count(2), held.count(3)


async def person_profile(store: Store, viewer: Viewer, person_id: PersonId) -> PersonProfile:
    """Return a profile; UserError `unknown-person` when the viewer may not know of the person.

    Admins may know of everyone.
    """
    person = await store.people.get(person_id)
    own = person_id == viewer.person
    boards = {each.id: each for each in await visible_boards(store, viewer)}
    newest = await history_of(store, person_id, limit=_MOST_SHOWN if own else _MOST_READ)
    past = [each for each in newest if own or _is_shown(each, boards, viewer)]
    if person is None or not (own or past or viewer.sees_all):
        raise UserError(
            "unknown-person", f"person {person_id} has no submissions on these leaderboards"
        )
    entered = [boards[each] for each in dict.fromkeys(entry.submission.board for entry in past)
              if each in boards]  # fmt: skip
    standings = [
        PersonStanding(board, standing)
        for board in entered
        for gpu in board.gpus
        if (standing := await own_standing(store, person_id, board, gpu)) is not None
    ]
    return PersonProfile(person, tuple(standings), tuple(past[:_MOST_SHOWN]), own)


def _is_shown(entry: HistoryEntry, boards: Mapping[BoardId, Board], viewer: Viewer) -> bool:
    """Return whether a profile shows this submission to other people.

    The rule for submissions of the system itself is that of `lookup.visible_submission`.
    """
    submission = entry.submission
    board = boards.get(submission.board)
    if board is None or not submission.is_ranked:
        return False
    return board.belongs_to(viewer) or not is_system_submission(submission.id)


_LAST_RANK = 3
_MOST_WINNERS = 10
"""The most kernels that are shown; many people may share a rank."""


@dataclass(frozen=True, slots=True)
class Winner:
    """A kernel with one of the first three ranks, and its source."""

    standing: Standing
    submission: Submission
    source: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """The winning kernels of a leaderboard; none while its board is open."""

    leaderboard: BoardStandings
    is_open: bool
    winners: tuple[Winner, ...]
    hidden: int
    """How many other winners there are, whose sources the board does not show."""


async def gallery(
    store: Store, clock: Clock, viewer: Viewer, board_name: str, *, gpu: str | None = None
) -> Gallery:
    """Return the winning kernels whose sources everyone who sees the board may read."""
    shown = (await board_standings(store, viewer, board_name, gpu))[0]
    if shown.board.is_open(clock.now()):
        return Gallery(shown, is_open=True, winners=(), hidden=0)
    first = [each for each in shown.entries if each.rank <= _LAST_RANK][:_MOST_WINNERS]
    found = await store.submissions.several([each.score.submission for each in first])
    readable = {each.id: each for each in found if shows_sources(shown.board, clock, each)}
    winners = [
        Winner(each, readable[number], await store.submissions.source(number))
        for each in first
        if (number := each.score.submission) in readable
    ]
    return Gallery(shown, False, tuple(winners), len(first) - len(winners))  # noqa: FBT003


async def with_own_runs(store: Store, found: Season, person: PersonId) -> Season:
    """Return a sample of a season with every run of this person."""
    shown = found.leaderboard
    own = await store.results.scores_of(person, shown.board.task_version, shown.gpu)
    known = {each.submission for each in found.scores}
    scores = [*found.scores, *(each for each in own if each.submission not in known)]
    return replace(found, scores=tuple(sorted(scores, key=by_submission_time)))


async def records_of(
    store: Store, clock: Clock, viewer: Viewer, board_name: str
) -> tuple[Board, list[Score]]:
    """Return a board and its records on all of its GPU types, the newest first."""
    board = await find_board(store, viewer, board_name)
    found: list[Score] = []
    for gpu in board.gpus:
        found += (await season(store, clock, viewer, board.name, gpu=gpu)).records
    found.sort(key=lambda each: (each.submitted_at, each.submission), reverse=True)
    return board, found

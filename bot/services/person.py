"""Tells of a person what the boards tell: the places held, and what was submitted."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PersonId, is_the_houses
from bot.domain.leaderboard import OwnStanding
from bot.domain.person import Person
from bot.domain.records import HistoryEntry
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.history import history_of
from bot.services.lookup import visible_boards
from bot.services.personal import own_standing
from runners.contract.task import Mode

_NEWEST = 100
_LOOKED_THROUGH = 300


@dataclass(frozen=True, slots=True)
class Place:
    """What a person holds on one GPU type of a board."""

    board: Board
    own: OwnStanding


@dataclass(frozen=True, slots=True)
class Portrait:
    """A person with places and submissions, newest first, on the boards that a viewer sees.

    Others see the ranked submissions alone.
    """

    person: Person
    places: tuple[Place, ...]
    past: tuple[HistoryEntry, ...]
    own: bool


async def portrait(store: Store, viewer: Viewer, person_id: PersonId) -> Portrait:
    """UserError `unknown-person` where the viewer has no way to know that there is such a one."""
    person = await store.people.get(person_id)
    own = person_id == viewer.person
    boards = {each.id: each for each in await visible_boards(store, viewer)}
    found = [] if person is None else await _ranked(store, person_id, own=own)
    past = [each for each in found if own or _is_shown(each.submission, boards, viewer)]
    if person is None or not (own or past):
        raise UserError("unknown-person", f"there is no person {person_id} on these leaderboards")
    played = [boards[each] for each in dict.fromkeys(entry.submission.board for entry in past)
              if each in boards]  # fmt: skip
    places = [
        Place(board, standing)
        for board in played
        for gpu in board.gpus
        if (standing := await own_standing(store, person_id, board, gpu)) is not None
    ]
    return Portrait(person, tuple(places), tuple(past[:_NEWEST]), own)


def _is_shown(given: Submission, boards: Mapping[BoardId, Board], viewer: Viewer) -> bool:
    """As `lookup.seen_submission` has it: what the house has judged is for the board's creator."""
    board = boards.get(given.board)
    if board is None:
        return False
    return board.belongs_to(viewer) or not is_the_houses(given.id)


async def _ranked(store: Store, person: PersonId, *, own: bool) -> list[HistoryEntry]:
    found = await history_of(store, person, limit=_NEWEST if own else _LOOKED_THROUGH)
    return [each for each in found if own or each.submission.mode is Mode.RANKED]

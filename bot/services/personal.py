"""Gives a person's own way on a board: what was submitted, and how the times have changed."""

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.ids import PersonId
from bot.domain.leaderboard import OwnStanding, PersonalBoard
from bot.ports import Store
from bot.services.history import history
from bot.services.leaderboards import leaderboard
from bot.services.lookup import find_board

_NEWEST = 200


async def personal(store: Store, viewer: Viewer, board_name: str) -> PersonalBoard:
    """The viewer's own standings and newest submissions on a board."""
    board = await find_board(store, viewer, board_name)
    found = [await own_standing(store, viewer.person, board, gpu) for gpu in board.gpus]
    past = await history(store, viewer, board_name, limit=_NEWEST)
    return PersonalBoard(board, tuple(each for each in found if each is not None), past)


async def own_standing(
    store: Store, person: PersonId, board: Board, gpu: str
) -> OwnStanding | None:
    """Where a person stands on one GPU type; None without a score there."""
    entries = (await leaderboard(store, board.task_version, gpu)).entries
    standing = next((each for each in entries if each.score.person == person), None)
    if standing is None:
        return None
    own = await store.results.scores_of(person, board.task_version, gpu)
    reference = await store.references.of(board.task_version, gpu)
    known = None if reference is None else reference.value
    return OwnStanding(gpu, standing, len(entries), own, known)

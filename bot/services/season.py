"""Gives one leaderboard with how it came about: the ranked times of the season, in order."""

from bot.domain.access import Viewer
from bot.domain.leaderboard import Season
from bot.ports import Clock, Store
from bot.services.lookup import find_board
from bot.services.standings import standings

MOST = 1_500
"""About so many scores are shown beside the records: more dots would be no more than ink."""


async def season(
    store: Store, clock: Clock, viewer: Viewer, board_name: str, *, gpu: str | None = None
) -> Season:
    """The season of the board's present task version, on its first GPU type unless told which."""
    board = await find_board(store, viewer, board_name)
    (leaderboard,) = await standings(store, viewer, board_name, gpu or board.gpus[0])
    course = await store.results.course(board.task_version, leaderboard.gpu, MOST)
    now = clock.now()
    end = now if board.deadline is None else min(now, board.deadline)
    last = course.scores[-1].submitted_at if course.scores else end
    return Season(leaderboard, course.scores, max(end, last), course.total)

"""Lists the boards that exist for a viewer, with who takes part and the best times."""

from collections.abc import Sequence

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.ids import TaskVersionId
from bot.domain.leaderboard import BoardOverview
from bot.domain.score import Score
from bot.ports import Store
from bot.services.lookup import find_board, visible_boards


async def boards(
    store: Store, viewer: Viewer, *, after: str = "", limit: int | None = None
) -> tuple[BoardOverview, ...]:
    """The boards that the viewer may see, by name: those behind a name, at most so many."""
    visible = [each for each in await visible_boards(store, viewer) if each.name > after]
    return await _overviews(store, visible[:limit])


async def board(store: Store, viewer: Viewer, name: str) -> BoardOverview:
    """The board of this name; UserError `unknown-board`."""
    (found,) = await _overviews(store, [await find_board(store, viewer, name)])
    return found


async def _overviews(store: Store, found: Sequence[Board]) -> tuple[BoardOverview, ...]:
    participants = await store.statistics.participants()
    keys = [(each.task_version, gpu) for each in found for gpu in each.gpus]
    best: dict[tuple[TaskVersionId, str], Score] = {
        (score.task_version, score.gpu): score for score in await store.results.fastest(keys)
    }
    return tuple(
        BoardOverview(
            each,
            participants.get(each.id, 0),
            tuple(
                best[each.task_version, gpu]
                for gpu in each.gpus
                if (each.task_version, gpu) in best
            ),
        )
        for each in found
    )

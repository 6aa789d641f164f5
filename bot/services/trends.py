"""A board's times over its season, and over its GPU types."""

from math import fsum, log

from bot.domain.board import Viewer
from bot.domain.ids import PersonId
from bot.domain.leaderboard import GpuScaling, PersonScaling, Season
from bot.domain.scoring import Standing
from bot.ports import Clock, Store
from bot.services.lookup import find_board
from bot.services.standings import board_standings, leaderboard


async def scaling(store: Store, viewer: Viewer, board_name: str) -> GpuScaling:
    """Return how kernels scale over the GPU types of a board's current task version."""
    board = await find_board(store, viewer, board_name)
    found = {gpu: (await leaderboard(store, board.task_version, gpu)).entries for gpu in board.gpus}
    firsts = {gpu: entries[0].score.value.time_ns for gpu, entries in found.items() if entries}
    people = _people(found)
    people.sort(key=lambda each: (-len(each.values), _slowness(each, firsts)))
    return GpuScaling(board, tuple(sorted(firsts, key=firsts.__getitem__)), tuple(people))


def _people(found: dict[str, tuple[Standing, ...]]) -> list[PersonScaling]:
    people: dict[PersonId, PersonScaling] = {}
    for gpu, entries in found.items():
        for entry in entries:
            score = entry.score
            person = people.setdefault(score.person, PersonScaling(score.person_name, {}))
            person.values[gpu] = score.value
    return list(people.values())


def _slowness(person: PersonScaling, firsts: dict[str, float]) -> float:
    """Return the mean logarithm of how much slower the person is than the first place."""
    ratios = [log(value.time_ns / firsts[gpu]) for gpu, value in person.values.items()]
    return fsum(ratios) / len(ratios)


MOST = 1_500
"""The approximate number of scores shown besides the records; more dots would overlap."""


async def season(
    store: Store, clock: Clock, viewer: Viewer, board_name: str, *, gpu: str | None = None
) -> Season:
    """Return the season of the current task version, by default on the board's first GPU type."""
    board = await find_board(store, viewer, board_name)
    (leaderboard,) = await board_standings(store, viewer, board_name, gpu or board.gpus[0])
    course = await store.results.course(board.task_version, leaderboard.gpu, MOST)
    now = clock.now()
    end = now if board.deadline is None else min(now, board.deadline)
    last = course.scores[-1].submitted_at if course.scores else end
    return Season(leaderboard, course.scores, max(end, last), course.total)

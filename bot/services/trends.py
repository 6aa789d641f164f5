"""Compares the GPU types of a board: each person's best time on every one of them."""

from math import fsum, log

from bot.domain.access import Viewer
from bot.domain.ids import PersonId
from bot.domain.leaderboard import GpuScaling, PersonScaling
from bot.domain.score import Standing
from bot.ports import Store
from bot.services.leaderboards import leaderboard
from bot.services.lookup import find_board


async def scaling(store: Store, viewer: Viewer, board_name: str) -> GpuScaling:
    """How kernels scale over the GPU types of a board's present task version."""
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
    """The mean of how many times slower than the first the person is, on a logarithmic scale."""
    ratios = [log(value.time_ns / firsts[gpu]) for gpu, value in person.values.items()]
    return fsum(ratios) / len(ratios)

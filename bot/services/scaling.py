"""Compares the GPU types of a board: each person's best time on every one of them."""

from dataclasses import dataclass
from math import fsum, log

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.ids import PersonId
from bot.domain.score import ScoreValue, Standing
from bot.ports import Store
from bot.services.leaderboards import leaderboard
from bot.services.lookup import find_board


@dataclass(frozen=True, slots=True)
class PersonScaling:
    """A person's best time on each GPU type that the person has a score on."""

    person_name: str
    values: dict[str, ScoreValue]


@dataclass(frozen=True, slots=True)
class Scaling:
    """The GPU types with scores, the fastest first, and people: the widest and fastest first."""

    board: Board
    gpus: tuple[str, ...]
    people: tuple[PersonScaling, ...]


async def scaling(store: Store, viewer: Viewer, board_name: str) -> Scaling:
    """How kernels scale over the GPU types of a board's present task version."""
    board = await find_board(store, viewer, board_name)
    found = {gpu: (await leaderboard(store, board.task_version, gpu)).entries for gpu in board.gpus}
    firsts = {gpu: entries[0].score.value.time_ns for gpu, entries in found.items() if entries}
    people = _people(found)
    people.sort(key=lambda each: (-len(each.values), _slowness(each, firsts)))
    return Scaling(board, tuple(sorted(firsts, key=firsts.__getitem__)), tuple(people))


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

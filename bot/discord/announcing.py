"""The news of a board: until when it is open, and what everyone is told of a new one."""

from collections.abc import Sequence
from datetime import datetime

from bot.discord.escaping import line, plain
from bot.domain.board import Board
from runners.contract.task import TaskDefinition

_INTRODUCTION = 1100
_GPUS = 8
"""GPU types that are named; a name has 32 letters at most."""


def season(deadline: datetime | None) -> str:
    """Until when a board is open, in the reader's own time zone."""
    if deadline is None:
        return "It has no deadline."
    at = int(deadline.timestamp())
    return f"It closes <t:{at}:F> (<t:{at}:R>)."


def announcement(board: Board, task: TaskDefinition) -> str:
    """Name, GPU types, deadline and what is to be solved, within one message."""
    head = f"**New leaderboard: {line(board.name)}** on {gpu_words(board.gpus)}"
    return f"{head}\n{season(board.deadline)}\n{_introduction(task.description.strip())}"


def gpu_words(gpus: Sequence[str]) -> str:
    """The GPU types, or the first of them and how many more there are."""
    shown = gpus if len(gpus) <= _GPUS else gpus[: _GPUS - 1]
    more = "" if len(gpus) <= _GPUS else f" and {len(gpus) - len(shown)} more"
    return plain(", ".join(shown)) + more


def _introduction(about: str) -> str:
    """The description, or as many whole lines of it as there is room for."""
    safe = plain(about)
    if len(safe) <= _INTRODUCTION:
        return safe
    kept = ""
    for each in about.splitlines():
        longer = f"{kept}{plain(each)}\n"
        if len(longer) > _INTRODUCTION:
            break
        kept = longer
    kept = kept or f"{line(about, _INTRODUCTION // 4)}\n"
    return f"{kept}(`/leaderboard task` has all of it)"

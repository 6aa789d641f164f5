"""Who judges now, and what waits."""

from datetime import datetime

from bot.domain.api.base import Answer
from runners.contract.runner import Capabilities


class RunnerAnswer(Answer):
    """A worker that lives; `gpus` is None until its runners have answered."""

    name: str
    gpus: tuple[str, ...] | None
    running: int
    """Jobs that it holds."""
    seen_at: datetime | None
    offers: dict[str, Capabilities]
    """What each of its runners offers."""


class RunnersAnswer(Answer):
    """The workers that live, by name, and the time here."""

    now: datetime
    runners: tuple[RunnerAnswer, ...]


class PoolAnswer(Answer):
    """One GPU type: its jobs that have not ended, and who offers it."""

    gpu: str
    queued: int
    running: int
    workers: int
    """How many workers offer it now."""
    paused: str | None
    """Why no jobs of it begin at the moment."""


class QueueAnswer(Answer):
    """Every GPU type that has jobs or workers, or is paused."""

    paused: str | None
    """Why no submissions are taken at the moment."""
    pools: tuple[PoolAnswer, ...]

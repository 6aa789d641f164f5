"""What became of one request, for those who count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.job import JobState
from runners.contract.verdict import Stage, Verdict


@dataclass(frozen=True, slots=True)
class Run:
    """One request's job; the verdict is there once it was judged."""

    gpu: str
    state: JobState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    verdict: Verdict | None = None
    stage: Stage | None = None
    used_s: float = 0.0
    durations_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds by step of the evaluation."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many requests are in one state, and how old they are on average, in seconds."""

    requests: int
    age_s: float

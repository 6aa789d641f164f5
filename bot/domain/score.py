"""A score: what one accepted ranked evaluation is worth on its board."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId


@dataclass(frozen=True, slots=True)
class ScoreValue:
    """A time in nanoseconds and half of its 95 % interval; lower is better."""

    time_ns: float
    half_width_ns: float


@dataclass(frozen=True, slots=True)
class Score:
    """A stored score, comparable only within the same task version and GPU type."""

    submission: SubmissionId
    person: PersonId
    person_name: str
    board: BoardId
    task_version: TaskVersionId
    gpu: str
    value: ScoreValue
    submitted_at: datetime
    pool: str = ""
    """Which machines timed it, see `pool_of`; empty where that was not noted."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard: a person's best score, its shared rank, and the tries it took."""

    rank: int
    score: Score
    attempts: int


def pool_of(worker: str | None, call: str | None) -> str:
    """The name of the machines that did a job: `local`, `modal`, `ray`, or an agent's name.

    Times of two pools may differ though their GPU type is one. An agent that judges by anything but
    its own cards says so, as in `box modal`. In place of a call its runner's name will do.
    """
    runner = (call or "").partition("/")[0].partition("_")[0]
    agent, is_agent, _ = (worker or "").partition(":")
    if not is_agent:
        return runner
    return agent if runner in {"", "local"} else f"{agent} {runner}"

"""The bodies of `/api/v1/admin`, and of what is running."""

from datetime import date, datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from bot.domain.api.base import WHOLE, GpuName, Name, Reason, RequestBody, ResponseBody
from runners.contract.runner import Capabilities
from runners.contract.task import Mode
from runners.contract.verdict import Verdict


class DecisionBody(RequestBody):
    """Why an admin does something; it is kept in the audit and shown to whom it concerns."""

    reason: Reason = ""


class PersonDeed(DecisionBody):
    """Whom it concerns, by identity, such as `discord:17`."""

    identity: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class PauseDeed(DecisionBody):
    """What is to rest: one board, one GPU type, or with neither the taking of submissions."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "required": ["board", "gpu"],
                "properties": {"board": {"type": "string"}, "gpu": {"type": "string"}},
            }
        }
    )
    board: Name | None = None
    gpu: GpuName | None = None


class LimitKey(DecisionBody):
    """Which submissions a limit counts; None covers every board, or every mode."""

    board: Name | None = None
    mode: Mode | None = None


class LimitOrder(LimitKey):
    """At most so many submissions of one person in any such time."""

    most: Annotated[int, Field(ge=1, le=1_000_000), WHOLE]
    window_s: Annotated[float, Field(ge=1, le=366 * 86_400)]


class Stopped(ResponseBody):
    """How many unfinished submissions a deed has stopped."""

    stopped: int


class LimitAnswer(ResponseBody):
    """A limit that holds."""

    board: str | None
    mode: Mode | None
    most: int
    window_s: float


class BanAnswer(ResponseBody):
    """Who may not submit, and why."""

    identity: str
    name: str
    reason: str


class RulesAnswer(ResponseBody):
    """Everything that keeps submissions out at the moment."""

    limits: tuple[LimitAnswer, ...]
    pause: str | None
    boards: dict[str, str]
    """The notice of each paused board."""
    gpus: dict[str, str]
    """The notice of each paused GPU type."""
    bans: tuple[BanAnswer, ...]


class DecisionAnswer(ResponseBody):
    """A row of the audit; nobody's name for what Podium did by itself."""

    actor: str | None
    action: str
    subject: str
    reason: str
    at: datetime


class AuditAnswer(ResponseBody):
    """Decisions, newest first; `next` is the cursor of the page after this one."""

    decisions: tuple[DecisionAnswer, ...]
    next: str | None


class DayAnswer(ResponseBody):
    """How much was submitted on a day."""

    day: date
    submissions: int
    people: int


class UsageAnswer(ResponseBody):
    """What one person's evaluations for one board needed of one GPU type."""

    board: str
    person: str
    gpu: str
    evaluations: int
    seconds: float
    """For which they had a GPU, or so many GPUs as many times."""
    cost: float | None = None
    """Of these seconds, in the owner's currency; None where no price of the GPU type is set."""


class StatsAnswer(ResponseBody):
    """Counts as they are now; days, verdicts and usage are of the last two weeks."""

    people: int
    boards: int
    days: tuple[DayAnswer, ...]
    verdicts: dict[Verdict, int]
    backlog: dict[str, dict[str, int]]
    """Jobs that have not ended, by GPU type and state."""
    usage: tuple[UsageAnswer, ...]


class RunnerAnswer(ResponseBody):
    """A worker that lives; `gpus` is None until its runners have answered."""

    name: str
    gpus: tuple[str, ...] | None
    running: int
    """Jobs that it holds."""
    seen_at: datetime | None
    offers: dict[str, Capabilities]
    """What each of its runners offers."""


class RunnersAnswer(ResponseBody):
    """The workers that live, by name, and the time here."""

    now: datetime
    runners: tuple[RunnerAnswer, ...]


class PoolAnswer(ResponseBody):
    """One GPU type: its jobs that have not ended, and who offers it."""

    gpu: str
    queued: int
    running: int
    workers: int
    """How many workers offer it now."""
    paused: str | None
    """Why no jobs of it begin at the moment."""


class QueueAnswer(ResponseBody):
    """Every GPU type that has jobs or workers, or is paused."""

    paused: str | None
    """Why no submissions are taken at the moment."""
    pools: tuple[PoolAnswer, ...]

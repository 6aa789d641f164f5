"""The bodies of `/api/v1/admin`, and those about live workers and queues."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints

from bot.domain.accounts import Person
from bot.domain.api.base import WHOLE, GpuName, Name, Reason, RequestBody, ResponseBody, Zoned
from bot.domain.costs import (
    MOST_QUOTA,
    CostReport,
    NamedQuota,
    Prices,
    Unit,
    Usage,
    UsageKind,
    cost,
)
from bot.domain.records import NamedAuditEntry, NamedLimit, SubmissionRules
from bot.domain.submission import Ban
from runners.contract.runner import Capabilities
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

Identity: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class DecisionBody(RequestBody):
    """The reason for an admin's decision, for the audit log and the person concerned."""

    reason: Reason = ""


class PersonDecision(DecisionBody):
    """A decision about one person, named by identity, such as `discord:17`."""

    identity: Identity


class BanOrder(PersonDecision):
    """Whom to ban, and until when; without `until`, until the ban is lifted."""

    until: Zoned | None = None


class PauseDecision(DecisionBody):
    """What to pause: one board, one GPU type, or, without either, all submissions."""

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
    """Which submissions a limit counts; None covers every board, every mode, or each person."""

    board: Name | None = None
    mode: Mode | None = None
    identity: Identity | None = None


class LimitOrder(LimitKey):
    """One person may make at most `most` submissions in any window of this length, to `until`."""

    until: Zoned | None = None
    most: Annotated[int, Field(ge=1, le=1_000_000), WHOLE]
    window_s: Annotated[float, Field(ge=1, le=366 * 86_400)]


class QuotaBody(DecisionBody):
    """Which GPU time a quota counts: None is all boards, all GPU types, or every person."""

    unit: Unit
    each_person: bool = True  # or all people have it together
    board: Name | None = None
    gpu: GpuName | None = None
    identity: Identity | None = None


class QuotaOrder(QuotaBody):
    """GPU time of at most `most` seconds or dollars a day (UTC)."""

    most: Annotated[float, Field(gt=0, le=MOST_QUOTA)]


class QuotaAnswer(ResponseBody):
    """A current quota of GPU time."""

    unit: Unit
    each_person: bool
    board: str | None
    gpu: str | None
    most: float
    identity: str | None = None
    reason: str = ""

    @classmethod
    def of(cls, named: NamedQuota) -> "QuotaAnswer":
        """Return a quota."""
        key, person = named.quota.key, named.person
        return cls(
            unit=key.unit,
            each_person=key.each_person,
            board=named.board,
            gpu=key.gpu,
            most=named.quota.most,
            identity=None if person is None else person.identity,
            reason=named.quota.reason,
        )


class Stopped(ResponseBody):
    """How many unfinished submissions a decision has stopped."""

    stopped: int


class LimitAnswer(ResponseBody):
    """A current limit."""

    board: str | None
    mode: Mode | None
    most: int
    window_s: float
    identity: str | None = None
    reason: str = ""
    until: datetime | None = None

    @classmethod
    def of(cls, named: NamedLimit) -> "LimitAnswer":
        """Return a limit."""
        limit, person = named.limit, named.person
        return cls(
            board=named.board,
            mode=limit.mode,
            most=limit.most,
            window_s=limit.window.total_seconds(),
            identity=None if person is None else person.identity,
            reason=limit.reason,
            until=limit.until,
        )


class BanAnswer(ResponseBody):
    """A banned person, the reason, and when the ban ends by itself."""

    identity: str
    name: str
    reason: str
    until: datetime | None = None

    @classmethod
    def of(cls, person: Person, ban: Ban) -> "BanAnswer":
        """Return a banned person."""
        return cls(identity=person.identity, name=person.name, reason=ban.reason, until=ban.until)


class RulesAnswer(ResponseBody):
    """Everything that currently prevents submissions."""

    limits: tuple[LimitAnswer, ...]
    pause: str | None
    boards: dict[str, str]
    """The notice of each paused board."""
    gpus: dict[str, str]
    """The notice of each paused GPU type."""
    bans: tuple[BanAnswer, ...]
    quotas: tuple[QuotaAnswer, ...] = ()

    @classmethod
    def of(cls, rules: SubmissionRules) -> "RulesAnswer":
        """Return all rules."""
        return cls(
            limits=tuple(map(LimitAnswer.of, rules.limits)),
            pause=rules.pause,
            boards=rules.boards,
            gpus=rules.gpus,
            bans=tuple(BanAnswer.of(person, ban) for person, ban in rules.bans),
            quotas=tuple(map(QuotaAnswer.of, rules.quotas)),
        )


class DecisionAnswer(ResponseBody):
    """An entry of the audit log; the actor's name is None for Podium itself."""

    actor: str | None
    action: str
    subject: str
    reason: str
    at: datetime


class AuditAnswer(ResponseBody):
    """Decisions, newest first; `next` is the cursor of the page after this one."""

    decisions: tuple[DecisionAnswer, ...]
    next: str | None

    @classmethod
    def of(cls, found: Sequence[NamedAuditEntry], limit: int) -> "AuditAnswer":
        """Return a page of at most `limit`; an extra entry means that there is a next page."""
        shown, more = found[:limit], len(found) > limit
        decisions = (
            DecisionAnswer(
                actor=each.actor_name,
                action=each.entry.action,
                subject=each.entry.subject,
                reason=each.entry.reason,
                at=each.entry.at,
            )
            for each in shown
        )
        return cls(decisions=tuple(decisions), next=str(shown[-1].entry.id) if more else None)


class DayAnswer(ResponseBody):
    """How many submissions were made on a day."""

    day: date
    submissions: int
    people: int


class UsageAnswer(ResponseBody):
    """The GPU time of a person on a board (empty: checks of tasks), GPU type and day (UTC)."""

    day: date
    board: str
    person_id: int
    person: str
    gpu: str
    kind: UsageKind
    evaluations: int
    seconds: float
    """GPU seconds: with several GPUs, each one counts."""
    cost: float | None = None
    """The cost of these seconds in dollars; None when the GPU type has no price."""

    @classmethod
    def of(cls, usage: Iterable[Usage], prices: Prices) -> "tuple[UsageAnswer, ...]":
        """Return the lines with their costs."""
        return tuple(
            cls(**asdict(each), cost=cost(prices, each.gpu, each.seconds)) for each in usage
        )


class CostsAnswer(ResponseBody):
    """Who used how much GPU time in the last `days` days (UTC), today included."""

    days: int
    usage: tuple[UsageAnswer, ...]
    prices: dict[str, float]
    """Dollars per second of one GPU, by GPU type."""

    @property
    def report(self) -> CostReport:
        """Return it as the domain's report."""
        lines = (each.model_dump(exclude={"cost"}) for each in self.usage)
        return CostReport(self.days, tuple(Usage(**line) for line in lines), self.prices)


class StatsAnswer(ResponseBody):
    """Current counts; days, verdicts and usage cover the last two weeks."""

    people: int
    boards: int
    days: tuple[DayAnswer, ...]
    verdicts: dict[Verdict, int]
    backlog: dict[str, dict[str, int]]
    """Jobs that have not ended, by GPU type and state."""
    usage: tuple[UsageAnswer, ...]


class RunnerAnswer(ResponseBody):
    """A live worker; `gpus` is None until its runners have answered."""

    name: str
    gpus: tuple[str, ...] | None
    running: int
    """Jobs that it holds."""
    seen_at: datetime | None
    offers: dict[str, Capabilities]
    """What each of its runners offers."""


class RunnersAnswer(ResponseBody):
    """The live workers, by name, and the server's time."""

    now: datetime
    runners: tuple[RunnerAnswer, ...]


class PoolAnswer(ResponseBody):
    """One GPU type: its unfinished jobs, and how many workers offer it."""

    gpu: str
    queued: int
    running: int
    workers: int
    """How many workers offer it now."""
    paused: str | None
    """Why no jobs on it are started now."""


class QueueAnswer(ResponseBody):
    """Every GPU type that has jobs or workers, or is paused."""

    paused: str | None
    """Why no submissions are accepted now."""
    pools: tuple[PoolAnswer, ...]

"""GPU time and money: prices, quotas, and what is left of a quota.

A quota limits the GPU time of one day (UTC), in seconds or in dollars. While a job runs, the most
that it may use is reserved. When it ends, what it used counts instead.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from bot.domain.accounts import Person
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PersonId
from bot.domain.times import show_span
from runners.contract.evaluation import CPU
from runners.contract.gpus import gpu_types
from runners.contract.task import Mode, TaskDefinition

Prices = Mapping[str, float]
"""The price of one second on one GPU in dollars, by GPU type."""
NO_PRICES: Prices = MappingProxyType({})

# Modal's list prices (https://modal.com/pricing) as public pages quoted them between October 2025
# and June 2026; those of H100, A100-80GB, L40S, L4 and T4 were verified there on 2026-05-07. The
# list has the GPU alone: Modal also charges for CPU and memory, and more in some regions.
MODAL_PRICES: Prices = MappingProxyType(
    {
        "T4": 0.000164,
        "L4": 0.000222,
        "A10": 0.000306,
        "L40S": 0.000542,
        "A100": 0.000583,
        "A100-80GB": 0.000694,
        "H100": 0.001097,
        "H200": 0.001261,
        "B200": 0.001736,
    }
)
_NONE = ("none",)
_CENT = 0.01


def parse_prices(texts: Iterable[str]) -> dict[str, float]:
    """Parse prices such as `A100=0.000583`, which replace Modal's; ValueError for anything else.

    With `none` alone no GPU type has a price.
    """
    written = tuple(texts)
    if written == _NONE:
        return {}
    prices = dict(MODAL_PRICES)
    for text in written:
        gpu, _, price = (each.strip() for each in text.partition("="))
        try:
            value = float(price)
        except ValueError:
            value = math.nan
        if not gpu or not 0 <= value < math.inf:
            raise ValueError(f"{text!r} is not a price per GPU second; write it as A100=0.000583")
        prices |= dict.fromkeys(gpu_types((gpu,)), value)
    return prices


def cost(prices: Prices, gpu: str, seconds: float) -> float | None:
    """Return the cost of GPU seconds; None without a known price."""
    price = prices.get(gpu)
    return None if price is None else price * seconds


def show_cost(value: float | None) -> str:
    """Return dollars with cents, such as `$0.02`; a dash for None."""
    if value is None:
        return "-"
    return "<$0.01" if 0 < value < _CENT else f"${value:,.2f}"


def show_seconds(seconds: float) -> str:
    """Return GPU seconds, such as `12.4 s` or `7,200 s`."""
    return f"{seconds:,.1f} s" if seconds < 1000 else f"{seconds:,.0f} s"


def gpu_time_line(gpu: str, seconds: float, value: float | None) -> str:
    """Return what a run used, such as `GPU time 12.4 s on H200, about $0.02`."""
    kind = "CPU" if gpu == CPU else "GPU"
    words = f"{kind} time {seconds:.1f} s on {gpu}"
    if value is None:
        return words
    return (
        f"{words}, less than $0.01" if 0 < value < _CENT else f"{words}, about {show_cost(value)}"
    )


class UsageKind(StrEnum):
    """Why GPU time was used; only `SUBMISSION` and `CHECK` count for quotas."""

    SUBMISSION = "submission"
    """A person's submission; also what it used before the person cancelled it."""
    CHECK = "check"
    """A run of a task's check, for the person who publishes the task."""
    REJUDGE = "rejudge"
    """A submission that an admin had judged again."""
    REFERENCE = "reference"
    """A task's own reference was timed."""
    CONFIRMATION = "confirmation"
    """Runs were compared, for a place or for a final."""
    FAULT = "fault"
    """An attempt that was lost, had an internal error, or in which the task's own code failed."""

    @property
    def counts(self) -> bool:
        """Return whether it counts for quotas."""
        return self in {UsageKind.SUBMISSION, UsageKind.CHECK}


@dataclass(frozen=True, slots=True)
class Usage:
    """The GPU time of one person on one board, GPU type and day (UTC).

    The system counts as a person. `board` is empty for the checks of tasks.
    """

    day: date
    board: str
    person_id: PersonId
    person: str
    gpu: str
    kind: UsageKind
    evaluations: int
    seconds: float
    """GPU seconds: a job on two GPUs counts twice."""


MOST_DAYS = 30
"""The most days of a cost report."""


@dataclass(frozen=True, slots=True)
class CostReport:
    """The GPU time of the last `days` days (UTC), today included; costs are at present prices."""

    days: int
    usage: tuple[Usage, ...]
    prices: Prices


class Unit(StrEnum):
    """What a quota counts."""

    SECONDS = "seconds"
    DOLLARS = "dollars"

    def show(self, amount: float) -> str:
        """Return an amount with its unit, such as `600 s` or `$2.50`."""
        return f"{amount:,.0f} s" if self is Unit.SECONDS else f"${amount:,.2f}"


@dataclass(frozen=True, slots=True)
class QuotaKey:
    """What a quota covers; None covers every board, or all GPU types together."""

    unit: Unit
    each_person: bool = True
    """Whether each person has the quota, or all people have it together."""
    board: BoardId | None = None
    gpu: str | None = None
    person: PersonId | None = None
    """The only person whom it limits; None limits everyone."""


MOST_QUOTA = 1e9
"""The greatest amount of a quota."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The most GPU time of one day (UTC)."""

    key: QuotaKey
    most: float
    reason: str = ""
    """The reason that the person reads, if the quota limits only one."""

    def __post_init__(self) -> None:
        if not 0 < self.most <= MOST_QUOTA:
            raise ValueError("a quota needs an amount above 0")

    @property
    def words(self) -> str:
        """Return the quota in words, such as `each person's 600 s a day on H100`."""
        key = self.key
        whose = "each person's" if key.each_person else "everyone's"
        whose = "the personal limit of" if key.person else whose
        where = f" on {key.gpu}" if key.gpu else ""
        board = " for this leaderboard" if key.board else ""
        why = f" ({self.reason})" if self.reason else ""
        return f"{whose} {key.unit.show(self.most)} a day{where}{board}{why}"


@dataclass(frozen=True, slots=True)
class NamedQuota:
    """A quota with the name of its board, if it covers only one, and the person, if only one."""

    quota: Quota
    board: str | None
    person: Person | None = None


@dataclass(frozen=True, slots=True)
class GpuTime:
    """GPU seconds on a board and GPU type that count for quotas: used today, and reserved."""

    person: PersonId
    board: BoardId | None
    gpu: str
    used_s: float = 0.0
    reserved_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Shortage:
    """A quota that has no room for a job, in the quota's unit."""

    quota: Quota
    used: float
    reserved: float
    needed: float

    @property
    def ends_with_jobs(self) -> bool:
        """Whether there may be room as soon as running jobs end."""
        return _fits(self.used + self.needed, self.quota.most)

    @property
    def words(self) -> str:
        """Return what is left and what is needed."""
        show = self.quota.key.unit.show
        most = f"this run may need up to {show(self.needed)}"
        if not _fits(self.needed, self.quota.most):
            return f"{most}, which is more than {self.quota.words}"
        left = max(0.0, self.quota.most - self.used)
        return f"{show(left)} of {self.quota.words} are left, and {most}"

    def refusal(self, now: datetime) -> UserError:
        """Return the refusal of a submission."""
        if not _fits(self.needed, self.quota.most):
            return UserError("quota", f"{self.words}; ask an admin for more GPU time")
        ends = day_after(now)
        when = f"in {show_span(max(1.0, (ends - now).total_seconds()))}"
        return UserError(
            "quota",
            f"{self.words}; quotas are per day (UTC): submit again {when}, or ask an admin for "
            "more GPU time",
            {when: ends},
        )

    @property
    def notice(self) -> str:
        """Return why a stored job waits, and until when."""
        if self.ends_with_jobs:
            return f"it waits for running jobs, which may still use {self.quota.words}"
        if not _fits(self.needed, self.quota.most):
            return f"{self.words}; it waits until an admin allows more"
        return f"{self.words}; it starts on the next day (UTC), or when an admin allows more"


def day_of(now: datetime) -> datetime:
    """Return when the day (UTC) began."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def day_after(now: datetime) -> datetime:
    """Return when the next day (UTC) begins."""
    return day_of(now) + timedelta(days=1)


def limit_and_cards(task: TaskDefinition, mode: Mode, gpu: str) -> tuple[float, int]:
    """Return the seconds that a job may take at most, and how many GPUs it uses."""
    return float(task.limit_s(mode)), 1 if gpu == CPU else task.world_size


def jobs_need(
    task: TaskDefinition, mode: Mode, gpus: Iterable[str], of: GpuTime
) -> tuple[GpuTime, ...]:
    """Return what a job on each of these GPU types needs, for the person and board in `of`."""
    limits = ((gpu, *limit_and_cards(task, mode, gpu)) for gpu in gpus)
    return tuple(replace(of, gpu=gpu, reserved_s=seconds * cards) for gpu, seconds, cards in limits)


def shortage(
    quotas: Iterable[Quota], times: Sequence[GpuTime], prices: Prices, need: GpuTime
) -> Shortage | None:
    """Return a quota without room for `need.reserved_s`; None if the job may start.

    A quota without room even after all running jobs have ended comes first.
    """
    found = [
        short
        for quota in quotas
        if _covers(quota.key, need, need.person)
        if (short := _shortage(quota, times, prices, need)) is not None
    ]
    return min(found, key=lambda short: short.ends_with_jobs, default=None)


def _shortage(
    quota: Quota, times: Iterable[GpuTime], prices: Prices, need: GpuTime
) -> Shortage | None:
    covered = [each for each in times if _covers(quota.key, each, need.person)]
    used = sum(_amount(quota, prices, each.gpu, each.used_s) for each in covered)
    held = sum(_amount(quota, prices, each.gpu, each.reserved_s) for each in covered)
    needed = _amount(quota, prices, need.gpu, need.reserved_s)
    is_free = not needed and quota.key.unit is Unit.DOLLARS
    if is_free or _fits(used + held + needed, quota.most):
        return None
    return Shortage(quota, used, held, needed)


def _amount(quota: Quota, prices: Prices, gpu: str, seconds: float) -> float:
    if quota.key.unit is Unit.SECONDS:
        return seconds
    return cost(prices, gpu, seconds) or 0.0


def _covers(key: QuotaKey, each: GpuTime, person: PersonId) -> bool:
    return (
        (not key.each_person or each.person == person)
        and key.person in {None, each.person}
        and key.board in {None, each.board}
        and key.gpu in {None, each.gpu}
    )


def _fits(amount: float, most: float) -> bool:
    """Return whether an amount is within a quota; sums of prices have rounding errors."""
    return amount <= most * (1 + 1e-9)

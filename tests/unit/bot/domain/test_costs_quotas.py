"""Properties of quotas: what is reserved and used, for any order of claims, ends and crashes."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bot.domain.costs import (
    GpuTime,
    Prices,
    Quota,
    QuotaKey,
    Shortage,
    Unit,
    cost,
    day_after,
    day_of,
    jobs_need,
    shortage,
)
from bot.domain.ids import BoardId, PersonId
from runners.contract.task import Mode
from tests.doubles.factories import make_task

PRICES: Prices = {"H100": 0.001097, "T4": 0.000164}
GPUS = ("H100", "T4", "CPU")
PEOPLE = (PersonId(1), PersonId(2))
BOARDS = (BoardId(1), BoardId(2), None)
LIMITS = st.sampled_from((0.0, 1.0, 60.0, 180.0, 0.1))

KEYS = st.builds(
    QuotaKey,
    unit=st.sampled_from(Unit),
    each_person=st.booleans(),
    board=st.sampled_from((None, *BOARDS[:2])),
    gpu=st.sampled_from((None, *GPUS)),
)
QUOTAS = st.lists(st.builds(Quota, KEYS, st.sampled_from((0.05, 0.3, 1.0, 100.0, 600.0))))


@dataclass
class Held:
    """A job that runs."""

    need: GpuTime
    fence: int
    settled: bool = False


@dataclass
class Ledger:
    """A model of a store: reservations of running jobs, and the time that ended attempts used."""

    used: list[GpuTime] = field(default_factory=list)
    running: list[Held] = field(default_factory=list)

    @property
    def times(self) -> list[GpuTime]:
        return [*self.used, *(each.need for each in self.running)]


def total(quota: Quota, person: PersonId, times: list[GpuTime]) -> float:
    """The amount that counts for a quota of this person, computed without the code under test."""
    key, found = quota.key, 0.0
    for each in times:
        if key.each_person and each.person != person:
            continue
        if key.board is not None and each.board != key.board:
            continue
        if key.gpu is not None and each.gpu != key.gpu:
            continue
        seconds = each.used_s + each.reserved_s
        found += seconds if key.unit is Unit.SECONDS else seconds * PRICES.get(each.gpu, 0.0)
    return found


class Season(RuleBasedStateMachine):
    """Claims, ends and crashes in any order, under any quotas."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.quotas: list[Quota] = []
        self.settled = Counter[str]()

    @rule(quotas=QUOTAS)
    def set_quotas(self, quotas: list[Quota]) -> None:
        """Only while nothing was used: a quota that is set later may be exceeded already."""
        if not self.ledger.times:
            self.quotas = quotas

    @rule(
        person=st.sampled_from(PEOPLE),
        board=st.sampled_from(BOARDS),
        gpu=st.sampled_from(GPUS),
        limit=LIMITS,
    )
    def claim(self, person: PersonId, board: BoardId | None, gpu: str, limit: float) -> None:
        need = GpuTime(person, board, gpu, reserved_s=limit)
        short = shortage(self.quotas, self.ledger.times, PRICES, need)
        if short is None:
            self.ledger.running.append(Held(need, len(self.ledger.times)))
        else:
            after = [*self.ledger.times, need]
            assert total(short.quota, person, after) > short.quota.most
            assert min(short.used, short.reserved, short.needed) >= 0
            free = shortage([short.quota], self.ledger.used, PRICES, need) is None
            assert short.ends_with_jobs == free

    @rule(share=st.floats(0, 1))
    def settle(self, share: float) -> None:
        if self.ledger.running:
            held = self.ledger.running.pop(0).need
            used = held.reserved_s * share
            self.ledger.used.append(GpuTime(held.person, held.board, held.gpu, used))
            self.settled[held.gpu] += int(used * 1000)

    @rule()
    def crash(self) -> None:
        """End a lease: its reservation is free, and counts for no quota."""
        if self.ledger.running:
            before = sum(each.used_s for each in self.ledger.used)
            self.ledger.running.pop()
            assert sum(each.used_s for each in self.ledger.times) == before

    @invariant()
    def no_quota_is_exceeded(self) -> None:
        for quota in self.quotas:
            for person in PEOPLE:
                assert total(quota, person, self.ledger.times) <= quota.most * (1 + 1e-6)

    @invariant()
    def nothing_is_negative_or_lost(self) -> None:
        assert all(each.used_s >= 0 and each.reserved_s >= 0 for each in self.ledger.times)
        for gpu in GPUS:
            used = sum(int(each.used_s * 1000) for each in self.ledger.used if each.gpu == gpu)
            assert used == self.settled[gpu]


TestSeason = Season.TestCase


@given(st.lists(st.floats(0, 1e6)), st.floats(0, 1))
def test_money_is_the_sum_of_its_parts(seconds: list[float], price: float) -> None:
    prices = {"L4": price}
    parts = [cost(prices, "L4", each) or 0.0 for each in seconds]
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(cost(prices, "L4", sum(seconds)))


@given(st.datetimes(timezones=st.just(UTC), max_value=datetime(9000, 1, 1)))  # noqa: DTZ001
def test_each_moment_is_in_one_day(now: datetime) -> None:
    assert day_of(now) <= now < day_after(now)
    assert (day_after(now) - day_of(now)).total_seconds() == 86_400


NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_a_refusal_for_a_quota_says_how_much_is_left_when_more_is_and_what_to_do() -> None:
    quota = Quota(QuotaKey(Unit.SECONDS, gpu="H200"), 600)
    refusal = Shortage(quota, 588.0, 0.0, 180.0).refusal(NOON)
    assert refusal.code == "quota"
    assert refusal.message == (
        "12 s of each person's 600 s a day on H200 are left, and this run may need up to 180 s; "
        "quotas are per day (UTC): submit again in 12 h, or ask an admin for more GPU time"
    )
    money = Quota(QuotaKey(Unit.DOLLARS, each_person=False, board=BoardId(1)), 2.5)
    words = Shortage(money, 2.75, 0.0, 0.2).refusal(NOON).message
    assert words.startswith("$0.00 of everyone's $2.50 a day for this leaderboard are left, and")


def test_a_refusal_of_a_run_that_could_never_fit_names_no_time_to_retry() -> None:
    short = Shortage(Quota(QuotaKey(Unit.SECONDS), 60), 0.0, 0.0, 180.0)
    words = "this run may need up to 180 s, which is more than each person's 60 s a day"
    assert short.refusal(NOON).message == f"{words}; ask an admin for more GPU time"
    assert short.notice == f"{words}; it waits until an admin allows more"


def test_a_run_that_costs_nothing_fits_every_quota_of_money() -> None:
    quota = Quota(QuotaKey(Unit.DOLLARS), 0.01)
    need = GpuTime(PEOPLE[0], None, "CPU", reserved_s=1e6)
    spent = GpuTime(PEOPLE[0], None, "H100", used_s=1e6)
    assert shortage([quota], [spent], PRICES, need) is None


def test_a_job_on_several_gpus_needs_the_limit_on_each() -> None:
    cases = ({"args": {"world_size": 4, "seed": 1}},)
    task = make_task(multi_gpu=True, tests=cases, benchmarks=cases)
    of = GpuTime(PEOPLE[0], None, "")
    limit = float(task.limit_s(Mode.RANKED))
    on_gpu, on_cpu = jobs_need(task, Mode.RANKED, ("H100", "CPU"), of)
    assert (on_gpu.reserved_s, on_cpu.reserved_s) == (4 * limit, limit)


@pytest.mark.parametrize("most", [0.0, -1.0, float("nan"), float("inf"), 2e9])
def test_an_amount_that_is_no_quota_is_refused(most: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Quota(QuotaKey(Unit.SECONDS), most)

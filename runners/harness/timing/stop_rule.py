"""Decides after each round whether timing stops, and whether its result needs an audit."""

from runners.contract.evaluation import EvaluationRequest, StopReason
from runners.contract.gpus import floor_ns
from runners.contract.task import Mode, Workload
from runners.harness.deadline import Deadline
from runners.harness.timing import clocks, cpu_times
from runners.harness.timing.rounds import Round
from runners.harness.timing.samples import SlowCalls
from runners.harness.verdicts import VerdictError

MARGIN = 1.3
"""A round starts only if this many times the last round's duration is left."""


HOST_S = 7.0
"""Seconds that all benchmarks of a run on the CPU take together, unless their least rounds take
longer; twice as long while a time cannot be ranked."""
HOST_HALF_WIDTH = 0.01
"""The relative half-width that is narrow enough on the CPU, where rounds differ by more."""


class StopRule:
    """The rule for one workload of a submission."""

    def __init__(
        self,
        request: EvaluationRequest,
        workload: Workload,
        slow_calls: SlowCalls,
        *,
        on_cpu: bool = False,
    ) -> None:
        self.request = request
        self.workload = workload
        self.slow_calls = slow_calls
        self.policy = request.round_policy
        self.on_cpu = on_cpu
        self.budget_s = HOST_S / len(request.task.timed(request.mode))
        self.preceded_s = 0.0
        """For how many seconds calls have run before other processes."""
        self.begin()

    def begin(self) -> None:
        """Begin the budget of this workload on the CPU."""
        self.budget = Deadline.after(self.budget_s)

    def budget_left(self, rounds: list[Round], *, awaited: bool = False) -> float:
        """Return the seconds that are left for further rounds on the CPU."""
        extra = self.budget_s if awaited or cpu_times.is_too_noisy(rounds) else 0.0
        return self.budget.remaining + extra

    @property
    def may_precede(self) -> bool:
        """Whether calls may run before other processes, which is for twice the budget at most.

        Only the time of the calls counts. If a slow import did, the rival's calls would still run
        before other processes when those of the submission no longer do.
        """
        return self.on_cpu and self.preceded_s < 2 * self.budget_s

    def round_deadline(self, done: int, share: Deadline) -> Deadline:
        """Return until when the next round takes more than its least samples."""
        rounds_left = max(1, self.policy.looks[0] - done)
        left = share.remaining / MARGIN
        if self.on_cpu:
            left = min(left, max(0.0, self.budget.remaining))
        return Deadline.after(left / rounds_left)

    def reason(
        self, rounds: list[Round], spent: float, share: Deadline, *, awaited: bool = False
    ) -> StopReason | None:
        """Return why timing stops after these rounds; None if another one follows.

        `spent` is the last round's duration in seconds; this workload's time ends at `share`. A
        time of the reference may be `awaited`, without which this one cannot be ranked.
        """
        if self.slow_calls.was_slow(rounds):
            return StopReason.SLOW
        count = len(rounds)
        if count in self.policy.looks and not awaited and self.is_precise(rounds):
            return StopReason.PRECISE
        if count >= self.policy.looks[-1]:
            return StopReason.ROUND_CAP
        least = self.policy.looks[0]
        if self.on_cpu and count >= least and self.budget_left(rounds, awaited=awaited) < spent:
            return StopReason.BUDGET
        return StopReason.TIME_CAP if self.is_late(spent, share) else None

    @staticmethod
    def is_late(spent: float, share: Deadline) -> bool:
        """Whether another round would take more than the time that is left."""
        return share.remaining < MARGIN * spent

    def is_precise(self, rounds: list[Round]) -> bool:
        """Whether the interval is narrow enough, and a claim is confirmed."""
        wanted = max(self.policy.half_width, HOST_HALF_WIDTH if self.on_cpu else 0.0)
        enough = clocks.is_narrow(rounds, wanted)
        if not enough or not clocks.publishes_claims(rounds):
            return enough
        # A claim that is less than its resolution, or is not confirmed, gets more rounds.
        fine = clocks.device_resolution(rounds) <= clocks.interval_of(rounds).centre
        confirmed = clocks.by_trains(rounds) or clocks.is_confirmed(rounds)
        return fine and confirmed and self.audit(rounds) is None

    def audit(self, rounds: list[Round]) -> VerdictError | None:
        """Return the verdict `audit` for a ranked time that its card cannot reach, or None."""
        if self.request.mode is not Mode.RANKED:
            return None
        floor = floor_ns(self.request.task, self.workload, self.request.gpu)
        value = clocks.interval_of(rounds).centre
        if clocks.publishes_claims(rounds):  # ranks use the judge's value, whatever is claimed
            value = min(value, clocks.combined_bound(rounds) + clocks.device_resolution(rounds))
        return clocks.below_floor(value, floor)

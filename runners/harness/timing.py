"""Rounds of timed calls on the CPU: the judge's window less the window of a trusted reader.

Nothing of a candidate runs outside a window: it is frozen while its input is written, while
its output is read, and while the calibration runs. So its own clock is not needed at all.
"""

from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import torch

from runners.contract.evaluation import Measurement, StopReason
from runners.contract.task import Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.channel import Operation, Reply
from runners.harness.correctness import seed_of
from runners.harness.deadline import Deadline
from runners.harness.integrity import refuse_changed_inputs, refuse_new_processes
from runners.harness.ruling import Ruling
from runners.harness.session import Seat, Session
from runners.harness.statistics import rounds_interval, standard_error_of_median
from runners.harness.values import Node

WARM_UPS = 3
"""Untimed calls of a fresh candidate on inputs of the same shapes."""
CALIBRATIONS = 8
"""Windows of the trusted reader in the candidate itself, before the submission is imported."""
SETTLING = 2
"""The first windows of a fresh process pay for copy-on-write after its fork: not counted."""
FLUSH_BYTES = 32 << 20
"""Written by the judge before every window, so that no input waits in a near cache."""
MARGIN = 1.3
"""A round is begun only when this many times the last round's duration is left."""


@dataclass(slots=True)
class Round:
    """One fresh candidate's raw numbers, all in nanoseconds."""

    windows: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    """Overhead of the candidate's own windows, before it imported the submission."""
    beside: list[float] = field(default_factory=list)
    """Overhead of a trusted candidate's windows, taken between the timed ones."""

    @property
    def overhead(self) -> float:
        """What a window costs beyond the kernel: the smaller calibration, which favours none."""
        return min(median(self.before), median(self.beside))

    @property
    def resolution(self) -> float:
        """By how much a sample of this round may be off: noise of both medians, and drift."""
        noise = standard_error_of_median(self.windows) + standard_error_of_median(self.beside)
        return 3 * noise + abs(median(self.before) - median(self.beside))


class Stopwatch:
    """Times one workload of a submission, round by round."""

    def __init__(self, session: Session, workload: Workload, deadline: Deadline) -> None:
        self.session = session
        self.workload = workload
        self.deadline = deadline
        self.policy = session.request.round_policy
        self.flush = torch.zeros(FLUSH_BYTES, dtype=torch.uint8)
        self.fixed = session.code.generate(workload, seed_of(session.nonce, workload, -1))
        self.expected = session.code.expected(self.fixed)
        self.index = 0

    def measure(self) -> Measurement:
        """Time rounds until the interval is narrow, the cap is reached or time runs out."""
        rounds: list[Round] = []
        with self.session.seat() as anchor:
            self._settle(anchor)
            stop = None
            while stop is None:
                before = self.deadline.remaining
                rounds.append(self._round(anchor, len(rounds)))
                spent = before - self.deadline.remaining
                self.session.tell(Stage.TIMING, len(rounds), self.policy.looks[-1])
                stop = self._stop_reason(rounds, spent)
        return measurement(rounds, stop)

    def _stop_reason(self, rounds: list[Round], spent: float) -> StopReason | None:
        count = len(rounds)
        if count in self.policy.looks and count > 1:
            values, _ = round_values(rounds)
            if rounds_interval(values).relative <= self.policy.half_width:
                return StopReason.PRECISE
        if count >= self.policy.looks[-1]:
            return StopReason.ROUND_CAP
        return StopReason.TIME_CAP if self.deadline.remaining < MARGIN * spent else None

    def _settle(self, seat: Seat) -> None:
        for _ in range(SETTLING):
            seat.call(Operation.TOUCH, self.fixed, self.deadline)

    def _round(self, anchor: Seat, done: int) -> Round:
        result = Round()
        with self.session.seat() as seat:
            self._settle(seat)
            for _ in range(CALIBRATIONS):
                result.before.append(self._overhead(seat))
            with self.session.lasting("build"):
                seat.build(self.deadline)
            begin = self.deadline.remaining
            for _ in range(WARM_UPS):
                self._call(seat)
            per_call = (begin - self.deadline.remaining) / WARM_UPS
            known = frozenset(seat.handle.process.strays)
            for _ in range(self._samples(per_call, done)):
                result.windows.append(self._call(seat))
                refuse_new_processes(known, seat.handle.process.strays)
                result.beside.append(self._overhead(anchor))
        return result

    def _samples(self, per_call: float, done: int) -> int:
        """As many samples as the policy wants and the time limit has room for, at least 3."""
        rounds_left = max(1, self.policy.looks[0] - done)
        room = int(self.deadline.remaining / MARGIN / rounds_left / max(per_call, 1e-6))
        return max(3, min(self.policy.samples, room))

    def _overhead(self, seat: Seat) -> float:
        self.flush.add_(1)
        exchange = seat.call(Operation.TOUCH, self.fixed, self.deadline)
        return exchange.window_ns - exchange.reply.claimed_ns  # trusted: nothing is imported there

    def _call(self, seat: Seat) -> float:
        data = self._fresh_input()
        with self.session.lasting("run"):
            self.flush.add_(1)
            exchange = seat.call(Operation.RUN, data, self.deadline)
        verify(seat, data, exchange.reply, self.expected)
        return float(exchange.window_ns)

    def _fresh_input(self) -> Any:  # noqa: ANN401 - the task's own type
        self.index += 1
        seed = seed_of(self.session.nonce, self.workload, self.index)
        with self.session.lasting("inputs"):
            return self.session.code.generate(self.workload, seed)


def verify(seat: Seat, data: object, reply: Reply, expected: Node | None) -> None:
    """Refuse a wrong output, or an input that was changed where the task does not allow it."""
    session = seat.session
    with session.lasting("check"):
        output = seat.fetch(reply)
        wrong = session.code.refusal(data, output, expected)
        if wrong:
            raise Ruling(Verdict.WRONG_ANSWER, wrong)
        if not session.request.task.mutates_inputs:
            refuse_changed_inputs(seat.arena, data, output)


def round_values(rounds: list[Round]) -> tuple[list[list[float]], float]:
    """Every sample's own time by round, and the resolution below which none is believed."""
    resolution = max(1.0, median(each.resolution for each in rounds))
    values = [[max(resolution, w - each.overhead) for w in each.windows] for each in rounds]
    return values, resolution


def measurement(rounds: list[Round], stop: StopReason) -> Measurement:
    """What the rounds say together."""
    values, resolution = round_values(rounds)
    interval = rounds_interval(values)
    bound = fmean(median(each.windows) - each.overhead for each in rounds)
    return Measurement(
        time_ns=interval.centre,
        half_width_ns=interval.half_width,
        bound_ns=bound,
        resolution_ns=resolution,
        rounds=len(rounds),
        samples=tuple(tuple(samples) for samples in values),
        stop_reason=stop,
    )

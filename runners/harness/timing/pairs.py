"""Compares a submission with its rival: their rounds alternate, on one card.

No candidate of one exists while a candidate of the other runs: each round starts its own candidate
when the other's has exited. Only the calibration candidate stays, which has no submission. The
order within two pairs is ABBA or BAAB, by a secret that exists only after both sources are fixed.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TypeVar

from runners.contract.comparison import PAIRS_LEAST, Comparison, Ratio
from runners.contract.evaluation import Measurement, StopReason
from runners.contract.task import IsolationLayer
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline, TimeBudget, ended_by_alarm
from runners.harness.gpu.health import await_processes, first_gpu
from runners.harness.gpu.memory import reset_persisting_lines
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.launches import launching_of
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession, other_session, seed_of
from runners.harness.sandbox.view import remove_jobs
from runners.harness.timing import clocks
from runners.harness.timing.calls import UnlikeInputError
from runners.harness.timing.intervals import log_interval, median_gap
from runners.harness.timing.rounds import HIDDEN_NS, Round
from runners.harness.timing.stopwatch import WorkloadTimer
from runners.harness.verdicts import MachineError, RivalFailedError, VerdictError

NARROW = 0.005
"""The half-width at which timing stops although neither submission is faster."""
LOOKS_WIDEN = 1.35
"""How much wider an interval is because it is checked up to five times.

With it, one of two equally fast submissions is called faster in 5.3 % of all comparisons with
`COMPARED_ROUNDS`, and without it in 17 % (100,000 simulated comparisons).
"""
WIDER_MOST = 2.0
"""How many times as wide as the interval of the faster submission's times that of the ratio may be.

Without it, one that is 2 % slower and takes six times as long in one round of seven was tied in
20 % of 20,000 simulated comparisons with `COMPARED_ROUNDS`; with it, in none. Of two equally fast
ones, one is called faster in 5.7 % instead of 5.2 % (40,000 simulated comparisons).
"""
UNSEEN_MOST = 1.5
"""How many times as large as measured the time that a window can hide may be: few calls tell it."""
_MEDIAN_LEAST = 5
"""The least number of ratios of which the median decides."""
SEEDS = 1 << 20
"""How many seeds each round has. No two share one: a process could pass answers to the others."""
MADE_MOST = 2
"""The most pairs that are timed, as a multiple of those that may count."""

_T = TypeVar("_T")


def of_rival(step: Callable[[], _T], deadline: Deadline | None = None) -> _T:
    """Return what a step of the rival returns; any fault is its own, also one of the task.

    A check of its answer that does not end ends soon after the deadline: it takes no time from the
    submission.
    """
    try:
        with nullcontext() if deadline is None else ended_by_alarm(deadline):
            return step()
    except VerdictError as error:
        raise RivalFailedError(error) from error


@dataclass(slots=True)
class Rival:
    """The rival of a request, and the ratios so far."""

    session: EvaluationSession
    deadline: Deadline
    """When its own rounds must have ended; moved while the submission runs."""
    failed: VerdictError | None = None
    ratios: list[Ratio] = field(default_factory=list)

    def comparison(self, *, passed: bool) -> Comparison:
        """The result; `passed` is whether the submission passed."""
        if self.failed is not None:
            message = self.failed.message
            return Comparison(rival_verdict=self.failed.verdict, rival_detail=message)
        ratios = tuple(self.ratios) if passed else ()
        return Comparison(benchmarks=ratios, rival_verdict=Verdict.PASSED)


@contextmanager
def rival_session(session: EvaluationSession) -> Iterator[EvaluationSession]:
    """Create the rival's session, which shares no file, build or log with the submission's."""
    task, source = session.request.task, session.request.rival
    if source is None:
        raise ValueError("the request has no rival")
    with other_session(session, task, source) as own, ExitStack() as extra:
        yield replace(
            own,
            launching=of_rival(lambda: launching_of(task, source)),
            compiled=None,
            is_rival=True,
            report=lambda _: None,
            log=bytearray(),
            files=[],
            durations_s={},
            slowed=Counter(),
            extra_candidates=extra,
        )


def ratio_of(pairs: list[tuple[Round, Round]]) -> Ratio:
    """The ratio of the times of at least two pairs, by the judge's own clock, with its interval.

    A submission that varies its times on purpose widens the interval, but becomes slower. So the
    times of the faster one limit the interval, and the median of the ratios decides too. If the
    slower one is slower only in some rounds, the machine may have slowed them: there is no limit.
    Of 600 simulated comparisons of two that differ by 2 %, where the machine slows both of a pair,
    2 % are ties; if two rounds of five take 60 % more, 1 % are. Of two equally fast ones, one is
    called faster in 5 %, also where the machine slows one round of twenty by 30 %.
    """
    ours, theirs = ([clocks.own_value(each) for each in one] for one in zip(*pairs, strict=True))
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    interval = log_interval(ratios)
    faster = log_interval(ours if interval.centre < 1 else theirs)
    allowed = max(NARROW, WIDER_MOST * LOOKS_WIDEN * faster.half_width / faster.centre)
    half_width = LOOKS_WIDEN * interval.half_width
    gap, error = median_gap(ratios, slower_first=interval.centre > 1)
    if gap > allowed or len(ratios) < _MEDIAN_LEAST:
        half_width = min(half_width, allowed * interval.centre)
    seen = Ratio(ratio=interval.centre, half_width=half_width, rounds=len(pairs))
    found = clocks.with_unseen(seen, *map(list, zip(*pairs, strict=True)))
    clear = gap - UNSEEN_MOST * found.unseen > LOOKS_WIDEN * error and len(ratios) >= _MEDIAN_LEAST
    return _decided(found) if clear else found


def _decided(found: Ratio) -> Ratio:
    """The ratio, as one that is not a tie unless the two differ by no more than may be hidden."""
    if (apart := abs(found.ratio - 1)) <= UNSEEN_MOST * found.unseen:
        return found
    return found.model_copy(update={"half_width": min(found.half_width, math.nextafter(apart, 0))})


@contextmanager
def paused(timer: WorkloadTimer) -> Iterator[None]:
    """Extend the time limits of a submission by the block, in which nothing of it runs."""
    begin = time.monotonic()
    try:
        yield
    finally:
        taken = time.monotonic() - begin
        timer.deadline = Deadline(timer.deadline.end + taken)
        timer.share = Deadline(timer.share.end + taken)
        timer.stop_rule.budget = Deadline(timer.stop_rule.budget.end + taken)


class PairedTimer:
    """Times one workload of a submission and of its rival in pairs of rounds."""

    def __init__(self, ours: WorkloadTimer, theirs: WorkloadTimer) -> None:
        self.ours, self.theirs = ours, theirs
        for timer in (ours, theirs):  # both run under the same conditions
            timer.reference.source = None
        self.session = ours.session
        self.most = max(2, ours.policy.looks[-1])
        self.least = min(PAIRS_LEAST, self.most)
        self.made: list[tuple[Round, Round]] = []
        self.numbers = count()
        """Yields the number of each pair, also of those that are dropped."""
        self.failed: VerdictError | None = None
        """Why the rival failed; then the submission is timed alone."""
        self.late: list[WorkloadTimer] = []
        """The timers whose usual time does not suffice for another round."""
        self.processes = 0
        """How many processes compute on the GPU between two rounds."""

    def measure(
        self, ours: TimeBudget, theirs: TimeBudget, report: Callable[[int], None]
    ) -> tuple[Measurement, Ratio | VerdictError]:
        """Return the submission's time, and the ratio or why the rival failed.

        VerdictError if the submission failed. If the rival fails, the submission is timed alone.
        """
        with self.ours.pool, self.theirs.pool:
            self._reserve()
            self.ours.open(ours)
            self.theirs.deadline, self.theirs.share = theirs.deadline, theirs.share
            with self._noting_failure(), paused(self.ours):
                of_rival(lambda: self.theirs.open(theirs), theirs.deadline)
            stop = self._all_rounds(report)
        return self.ours.result(stop), self.failed or self._ratio()

    def _all_rounds(self, report: Callable[[int], None]) -> StopReason:
        """Time pairs or, if the rival fails, rounds of the submission alone."""
        while True:
            try:
                with self._calibrator() as calibrator:
                    if self.failed is None:
                        with self._noting_failure():
                            stop = self._alternate(calibrator, report)
                            of_rival(partial(self.theirs.result, stop))
                            return stop
                    return self.ours.add_rounds(calibrator, report)
            except UnlikeInputError as unlike:
                self.made.clear()
                self.late.clear()
                for timer in (self.ours, self.theirs):
                    timer.begin_again(unlike)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except RivalFailedError as failed:
            self.theirs.pool.close()
            self.failed = failed.error

    def _reserve(self) -> None:
        """Give the candidates of both equally many places for trains."""
        if self.session.on_gpu and self.ours.expected is not None:
            for each in (self.ours, self.theirs):
                each.reserve()
                each.trains.compare()
            self.theirs.trains.places = self.theirs.pool.places = self.ours.pool.places

    @contextmanager
    def _calibrator(self) -> Iterator[HostCandidate]:
        """Yield a candidate for calibration that has neither submission."""
        task, timer = self.session.request.task, self.ours
        with (
            other_session(self.session, task, "") as neutral,
            fresh_candidate(neutral, timer.plan, timer.expected) as calibrator,
        ):
            timer.settle(calibrator)
            self.processes = first_gpu().processes() if self.session.on_gpu else 0
            yield calibrator

    def _alternate(self, calibrator: HostCandidate, report: Callable[[int], None]) -> StopReason:
        while True:
            number = next(self.numbers)
            if self._ours_first(number):
                ours = self._our_round(calibrator, number)
                theirs = self._their_round(calibrator, number)
            else:
                theirs = self._their_round(calibrator, number)
                ours = self._our_round(calibrator, number)
            self.made.append((ours, theirs))
            self._time_alike()
            report(len(self.pairs))
            if stop := self._reason():
                return stop

    def _ours_first(self, number: int) -> bool:
        """Whether it comes first: at random in every second pair, in the next one reversed."""
        bit = seed_of(self.session.nonce, self.ours.workload, -2 - number // 2) & 1
        return bool(bit ^ (number & 1))

    def _our_round(self, calibrator: HostCandidate, number: int) -> Round:
        with paused(self.theirs):
            return self._round(self.ours, calibrator, number)

    def _their_round(self, calibrator: HostCandidate, number: int) -> Round:
        with paused(self.ours):
            timer = self.theirs
            return of_rival(lambda: self._round(timer, calibrator, number), timer.deadline)

    def _round(self, timer: WorkloadTimer, calibrator: HostCandidate, number: int) -> Round:
        """Time one round with a candidate that starts now and has exited at the end."""
        self._clear()
        timer.index = (2 * number + (timer is self.theirs) + 1) * SEEDS
        try:
            timed, spent = timer.add_round(calibrator)
        finally:
            timer.pool.close()
        if timer not in self.late and timer.stop_rule.is_late(spent, timer.share):
            self.late.append(timer)
        return timed

    def _clear(self) -> None:
        """Remove what an ended candidate may have left; MachineError if it still runs."""
        layers = self.session.isolation.layers  # those of the submission's first candidate
        if layers and IsolationLayer.FILESYSTEM not in layers:
            remove_jobs()
        if self.session.on_gpu:
            reset_persisting_lines()
            if not await_processes(self.processes):
                raise MachineError("a process that has ended still computes on the GPU")

    def _time_alike(self) -> None:
        """Time both by trains if one of them is, unless the other one takes much longer."""
        for timer, other, last in (
            (self.ours, self.theirs, self.made[-1][0]),
            (self.theirs, self.ours, self.made[-1][1]),
        ):
            near = clocks.own_value(last) < timer.trains.short_ns + 2 * HIDDEN_NS
            timer.trains.required |= other.trains.required and near
        for timer in (self.ours, self.theirs):
            timer.rounds = timer.trains.comparable(timer.rounds)
        clocks.share_calibration(each.trains for pair in self.made for each in pair)

    @property
    def pairs(self) -> list[tuple[Round, Round]]:
        """The pairs of which both rounds count."""
        counted = {id(each) for timer in (self.ours, self.theirs) for each in timer.rounds}
        return [pair for pair in self.made if all(id(each) in counted for each in pair)]

    def _reason(self) -> StopReason | None:
        """Return why timing stops; None if another pair follows."""
        count, slow = len(self.pairs), self.ours.stop_rule.slow_calls
        theirs = self.theirs.stop_rule.slow_calls
        if count > 1 and slow.was_slow(self.ours.rounds):
            return StopReason.SLOW
        if count in self.ours.policy.looks and self._is_decided():
            return StopReason.PRECISE
        if count >= self.most:
            return StopReason.ROUND_CAP
        if len(self.made) >= MADE_MOST * self.most:
            raise MachineError("too few rounds of both can be compared")
        late = bool(self.late) or theirs.was_slow(self.theirs.rounds)
        return StopReason.TIME_CAP if late and count >= self.least else None

    def _ratio(self) -> Ratio:
        """The ratio of all pairs; not a tie if only the slower one prevented further pairs.

        Few pairs give a wide interval, so a slower one could waste time for a tie. But if the times
        of the faster one vary as much, chance would decide between equal ones.
        """
        found, both = ratio_of(self.pairs), (self.ours, self.theirs)
        faster = log_interval([clocks.own_value(pair[found.ratio > 1]) for pair in self.pairs])
        clear = abs(found.ratio - 1) > faster.half_width / faster.centre
        slow = [each for each in both if each.stop_rule.slow_calls.was_slow(each.rounds)]
        return _decided(found) if clear and [both[found.ratio <= 1]] in (self.late, slow) else found

    def _is_decided(self) -> bool:
        """Whether one is faster, or both are equally fast, and no time needs an audit."""
        if len(self.pairs) < 2:
            return False
        ratio = ratio_of(self.pairs)
        noise = ratio.half_width - ratio.unseen
        if ratio.is_tie and noise > max(NARROW * ratio.ratio, ratio.unseen - abs(ratio.ratio - 1)):
            return False
        rival = of_rival(lambda: self.theirs.stop_rule.audit(self.theirs.rounds))
        return rival is None and self.ours.stop_rule.audit(self.ours.rounds) is None

"""Trains: many short calls of one candidate, each in its own window of the judge's clock.

All calls are queued before the first input is there, and no CPU takes part while they run. No
window contains a handover word or a time stamp of the candidate, so a candidate gains nothing by
omitting them. Between two calls only the judge's work runs on the GPU: the second input is not in
the candidate's memory before the first output has been copied.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import torch

from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.gpu.buffers import Withheld, place_count
from runners.harness.gpu.handover import PlaceActions, TrainActions, TrainCall, TrainWindows
from runners.harness.gpu.memory import ended_on_failure, usual_algorithms
from runners.harness.judge.answer import Answer, Place
from runners.harness.judge.checks import refuse_new_processes
from runners.harness.judge.device_candidate import PATIENCE_S, DeviceCandidate
from runners.harness.judge.host_candidate import HostCandidate, verify
from runners.harness.judge.session import EvaluationSession, planned
from runners.harness.protocol import channel, values
from runners.harness.protocol.arena import Plan
from runners.harness.timing.rounds import HIDDEN_NS, SHORT_NS, DisturbedError, Round, Trains
from runners.harness.verdicts import VerdictError

UNSTAMPED = 2
"""How many trains follow one in which the candidate times its calls. Only their windows count,
because two time stamps lengthen a window. The calibration kernel runs all, then the submission."""
UNSTAMPED_COMPARED = 8
"""The same for two submissions that are compared, because their candidates' starts take longer."""
SHORT_COMPARED_NS = 1_000_000.0
"""Two submissions that take less are compared by trains, because two whose single calls differ by
no more than `HIDDEN_NS` are tied: 1 % at 0.4 ms. One that cannot be queued as a train, such as one
of a hundred launches, is compared by single calls if they take more than `SHORT_NS`."""


@dataclass(frozen=True, slots=True)
class TrainTimes:
    """The times of every call of a train but the first, in nanoseconds."""

    windows: tuple[float, ...]
    claims: tuple[float, ...]
    """By the candidate's clock; empty unless the train was stamped."""


class TrainRunner:
    """Runs trains in one candidate; each call of a train has its own place in the shared memory."""

    def __init__(self, candidate: DeviceCandidate, calls: int) -> None:
        self.candidate = candidate
        self.windows = TrainWindows(candidate.handover, calls)
        self.places = [self._place(number) for number in range(calls)]
        self.outputs: tuple[values.Node, ...] = ()
        """The candidate's descriptions of the current train's outputs."""
        self.staged = False
        """Whether the calibration input is staged, which is the same in every train."""

    def _place(self, number: int) -> Place:
        candidate, buffers = self.candidate, self.candidate.buffers
        shift = buffers.places_at + number * buffers.place_size
        answer = Answer(buffers, candidate.device_base, remote=False, shift=shift)
        staging = torch.zeros_like(buffers.staging)
        return Place(shift, answer, staging, Withheld(staging))

    @contextmanager
    def _at(self, place: Place) -> Iterator[None]:
        """Make the candidate's driver use this place."""
        before, self.candidate.place = self.candidate.place, place
        try:
            yield
        finally:
            self.candidate.place = before

    def run(
        self,
        operation: channel.Operation,
        data: Sequence[object],
        expected: values.Node,
        deadline: Deadline,
        *,
        stamped: bool,
    ) -> TrainTimes | None:
        """Run one train and check every output; None if the candidate did not queue it in time.

        VerdictError if an output is wrong, or the inputs differ in more than their tensors' bytes.
        """
        order = self._order(operation, data, expected, stamped=stamped)
        touches = operation is channel.Operation.TOUCH
        staged, self.staged = touches and self.staged, touches
        call = self._call(operation, int if staged else partial(self._stage, order, data))
        handle = self.candidate.handle
        with usual_algorithms(), ended_on_failure(handle.end, self.windows.abort):
            exchange = handle.call_on_device(channel.encode(order), deadline, call)
        for place in self.places:
            place.withheld.restore()
        if exchange.late:
            return None
        if operation is channel.Operation.RUN:
            self.candidate.buffers.check_free_memory()
            self._verify(data, expected, deadline)
        claims = exchange.reply.claims_ns or ()
        if len(claims) != (len(data) if stamped else 0):
            raise VerdictError(Verdict.DISALLOWED, "the candidate sent no valid reply")
        return TrainTimes(tuple(self.windows.windows_ns()), tuple(claims[1:]))

    def _stage(self, order: channel.CandidateRequest, data: Sequence[object]) -> None:
        for place, value in zip(self.places, data, strict=True):
            with self._at(place):
                self.candidate.stage(order.value or values.ScalarNode(), value)

    def _order(
        self,
        operation: channel.Operation,
        data: Sequence[object],
        expected: values.Node,
        *,
        stamped: bool,
    ) -> channel.CandidateRequest:
        node = planned(data[0]).node
        if any(planned(each).node != node for each in data[1:]):
            message = "inputs of the task have another structure with another seed"
            raise VerdictError(Verdict.TASK_ERROR, message)
        for answer in (self.candidate.answer, *(place.answer for place in self.places)):
            answer.expect(expected)
        buffers = self.candidate.buffers
        train = channel.Train(
            calls=len(data), first=buffers.places_at, stride=buffers.place_size, stamped=stamped
        )
        rooms = self.candidate.answer.rooms
        return channel.CandidateRequest(
            operation=operation, value=node, rooms=rooms, ahead=True, train=train
        )

    def _call(self, operation: channel.Operation, stage: Callable[[], object]) -> TrainCall:
        memory, flush = self.candidate.buffers.memory.bytes, self.candidate.buffers.flush_cache

        def steps(place: Place) -> PlaceActions:
            here = memory[place.shift : place.shift + place.staging.numel()]

            def reveal() -> None:
                place.answer.poison()
                here.copy_(place.staging)

            def complete() -> None:
                place.answer.poison_again()
                place.withheld.reveal(here)

            return PlaceActions(reveal=reveal, complete=complete, capture=place.answer.capture)

        def queued(first: channel.CandidateReply) -> None:
            self.outputs = first.outputs or ()
            if len(self.outputs) != len(self.places):
                raise VerdictError(Verdict.DISALLOWED, "the candidate described no output")
            for place, output in zip(self.places, self.outputs, strict=True):
                answer = place.answer
                touches = operation is channel.Operation.TOUCH
                answer.expect_at(answer.room if touches else answer.places(output))
            torch.cuda.synchronize()

        actions = TrainActions([*map(steps, self.places)], stage, queued, flush)
        return TrainCall(self.windows, len(self.places) * PATIENCE_S, actions)

    def _verify(self, data: Sequence[object], expected: values.Node, deadline: Deadline) -> None:
        done = channel.CandidateReply(status=channel.Status.DONE)
        for place, value, output in zip(self.places, data, self.outputs, strict=True):
            reply = done.model_copy(update={"output": output})
            with self._at(place):
                verify(self.candidate, value, reply, expected, deadline=deadline)


CALIBRATED_AFTER = 5
"""Calibration windows after the trains of a round."""
RUNS_WHILE_FROZEN = "the kernel works while its candidate is frozen"


@dataclass(slots=True)
class ShortCalls:
    """Decides whether a workload is timed by trains, and runs the trains."""

    session: EvaluationSession
    calibration_input: object
    fresh: Callable[[], object]
    """Returns a fresh input."""
    places: int = 0
    """How many calls a train has; 0 if there are no trains."""
    required: bool = False
    """Whether a round was timed by trains; then all are, whatever a candidate claims."""
    too_long: bool = False
    """Whether a train for a comparison was not queued in time; then single calls count too."""
    current: "CandidateTrains | None" = None
    """The trains of the current candidate; None if it has none."""
    short_ns: float = SHORT_NS
    """Kernels that take less are timed by trains."""
    unstamped: int = UNSTAMPED

    def compare(self) -> None:
        """Time longer kernels by trains too, and more precisely, for a comparison."""
        self.short_ns, self.unstamped = SHORT_COMPARED_NS, UNSTAMPED_COMPARED

    def reserve(
        self, plans: tuple[Plan, Plan], expected: values.Node | None, candidates: int
    ) -> int:
        """Return how many places for trains each candidate gets, given the layouts of two inputs.

        It gets none if the layouts differ, because all inputs of a train share one description.
        Device code gets none either, because its guard bands are laid around a single place.
        """
        timed = self.session.request.mode in {Mode.RANKED, Mode.BENCHMARK}
        alike = plans[0].node == plans[1].node
        if self.session.on_gpu and timed and alike and self.session.launching is None:
            self.places = place_count(plans[0], expected, candidates)
        return self.places

    def fits(self, claim_ns: float, bound_ns: float = math.inf) -> bool:
        """Whether a kernel with this claim, and this time by the judge's clock, is timed by trains.

        The limit of the bound is higher by what the window of a single call can hide.
        """
        short = claim_ns < self.short_ns or bound_ns < self.short_ns + HIDDEN_NS
        return self.current is not None and not self.too_long and (self.required or short)

    def fits_rehearsal(self, calls: Sequence[channel.Exchange], result: Round) -> bool:
        """Whether a kernel with these single calls, which were queued ahead, is timed by trains.

        They also limit what its trains tell, because only their windows end with all of its work.
        That of a late call tells nothing.
        """
        if self.current is None:
            return False
        in_time = [each for each in calls if not each.late]
        windows = [each.window_ns - median(result.own_overheads) for each in in_time]
        self.current.times.least = min(windows) - HIDDEN_NS
        self.current.times.most = max(windows) + HIDDEN_NS
        return self.fits(min(each.reply.claimed_ns for each in in_time))

    def comparable(self, rounds: list[Round]) -> list[Round]:
        """Return the rounds that count; with trains, those of single calls queued ahead do not."""
        self.required = self.required or any(each.trains is not None for each in rounds)
        if self.too_long or not self.required:
            return rounds
        return [each for each in rounds if each.trains is not None or not each.claimed]

    def calibrate(
        self, candidate: HostCandidate, expected: values.Node | None, deadline: Deadline
    ) -> None:
        """Run trains of the calibration kernel if the candidate has places for trains."""
        self.current = None
        if expected is None or not isinstance(candidate, DeviceCandidate):
            return
        if self.places and candidate.buffers.place_size:
            runner = TrainRunner(candidate, self.places)
            found = CandidateTrains(runner, self.places, expected, deadline, self.unstamped)
            if found.run_calibration(self.calibration_input):
                self.current = found

    def run(
        self, candidate: HostCandidate, result: Round, calibration: Callable[[], float]
    ) -> bool:
        """Time the submission in this candidate; False if a train was not queued in time.

        In that case no further call is queued ahead, so the judge's clock includes the launches,
        unless `_compares_single_calls`. `calibration` measures the overhead of a calibration
        window. Disturbed trains and windows are repeated, like disturbed single calls.
        """
        with self.session.record_duration("trains"):
            timed = self._undisturbed(candidate, result)
        if timed is None:
            self.too_long = self._compares_single_calls()
            candidate.ahead = result.claimed = self.too_long
            return False
        result.trains, result.claims, result.claimed = timed, timed.claims, True
        result.overheads_during.clear()
        while len(result.overheads_during) < CALIBRATED_AFTER:
            after = calibration()
            if result.disturbed_by(after):
                result.discard(DisturbedError(result))
            else:
                result.overheads_during.append(after)
        return True

    def _compares_single_calls(self) -> bool:
        """Whether single calls of this candidate count in a comparison, since they hide little."""
        compared = self.short_ns > SHORT_NS
        return compared and self.current is not None and self.current.times.least >= SHORT_NS

    def _undisturbed(self, candidate: HostCandidate, result: Round) -> Trains | None:
        process = candidate.handle.process
        known = frozenset(process.descendants)
        while self.current is not None:
            ran = process.ran_while_frozen
            timed = self.current.measure(self.fresh)
            refuse_new_processes(known, process.descendants)
            candidate.handle.verify_frozen(self.current.deadline)
            if process.ran_while_frozen > ran:
                result.discard(VerdictError(Verdict.DISALLOWED, RUNS_WHILE_FROZEN))
            elif reasons := candidate.slowed_by():
                result.discarded += 1
                self.session.count_slowed(reasons)
            else:
                return timed
        return None


@dataclass(slots=True)
class CandidateTrains:
    """The trains of one candidate."""

    runner: TrainRunner
    calls: int
    expected: values.Node
    deadline: Deadline
    unstamped: int = UNSTAMPED
    times: Trains = field(default_factory=Trains)

    def run_calibration(self, data: object) -> bool:
        """Run the trains of the calibration kernel; False if one was not queued in time."""
        for stamped in (True, *[False] * self.unstamped):
            found = self._run(channel.Operation.TOUCH, [data] * self.calls, stamped=stamped)
            if found is None:
                return False
            self.times.calibration_claims += found.claims
            self.times.calibration_windows += () if stamped else found.windows
        return True

    def measure(self, fresh: Callable[[], object]) -> Trains | None:
        """Run the trains of the submission; None if one was not queued in time."""
        self.times.windows.clear()
        self.times.claims.clear()
        self.runner.candidate.buffers.check_free_memory(self.calls)
        for stamped in (True, *[False] * self.unstamped):
            inputs = (fresh() for _ in range(self.calls))  # those of the last train are freed
            found = self._run(channel.Operation.RUN, [*inputs], stamped=stamped)
            if found is None:
                return None
            self.times.claims += found.claims
            self.times.windows += () if stamped else found.windows
        return self.times

    def _run(
        self, operation: channel.Operation, data: Sequence[object], *, stamped: bool
    ) -> TrainTimes | None:
        return self.runner.run(operation, data, self.expected, self.deadline, stamped=stamped)

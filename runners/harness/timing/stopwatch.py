"""Rounds of timed calls, with fresh candidates and inputs; every output is checked.

On the CPU a candidate runs only inside its windows. It is frozen while its input is written, while
its output is read, and during calibration.
"""

from collections.abc import Callable
from statistics import median

from runners.contract.evaluation import Measurement, StopReason
from runners.contract.task import Workload
from runners.contract.verdict import Verdict
from runners.harness.deadline import TimeBudget
from runners.harness.judge.checks import refuse_new_processes, refuse_other_program
from runners.harness.judge.host_candidate import CORES, HostCandidate, verify
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession, planned
from runners.harness.protocol import channel, values
from runners.harness.supervision.waiting import OtherProcesses
from runners.harness.timing import clocks
from runners.harness.timing.calls import (
    STARTS_MOST,
    WARM_UPS,
    UnlikeInputError,
    WorkloadCalls,
    calm_overheads,
    untimed,
    with_preparation,
)
from runners.harness.timing.rounds import LEFT_OUT, DisturbedError, Round
from runners.harness.verdicts import MachineError, VerdictError

CALIBRATIONS = 15
"""Windows of the calibration candidate before the timed candidate imports the submission."""
HOST_CALIBRATIONS = 4
"""The same on the CPU, where each one writes a whole input; the median ignores single outliers."""
ECHOES = 5
"""Windows of a workload on the CPU in which the calibration candidate only answers."""
SETTLING = 2
"""Windows of a fresh process that are not counted, because they pay for copy-on-write."""
RUNS_AFTER_CALLS = "the kernel continues to work after its calls"
SLOWS_AFTER_CALLS = "the kernel leaves work running that slows this GPU between its calls"
WAITING_CALIBRATIONS = 3
"""Windows on a GPU of a trusted kernel that waits for its input before it is launched."""
CALIBRATED_EVERY = 2
"""On a GPU, one calibration window follows this many calls."""
REHEARSALS = 2
"""Untimed calls on a GPU that are queued ahead; the first one may load modules."""
ROUNDS_VOID_MOST = 4
"""The most times that a round is timed if its calibration drifts each time."""
BLAMED_MOST = 2
"""After this many void rounds that only the submission can have caused, it is rejected."""
CALIBRATIONS_ALONE_MOST = 20
"""The most medians of calibration windows that are measured while no other candidate exists."""


class WorkloadTimer(WorkloadCalls):
    """Times one workload of a submission, round by round."""

    def __init__(self, session: EvaluationSession, workload: Workload) -> None:
        super().__init__(session, workload)
        self.begun = False
        self.rounds: list[Round] = []

    def begin(self) -> None:
        """On a GPU, start candidates in the background; a second call does nothing."""
        if self.session.on_gpu and self.expected is not None and not self.begun:
            self.begun = True
            self.reserve()
            self.pool.begin(self._candidates_needed(1, 0))

    def begin_again(self, unlike: UnlikeInputError) -> None:
        """Drop all rounds and candidates; the next ones are prepared for such an input."""
        self.adapt(unlike.plan, unlike.expected)
        self.pool.close()
        self.rounds.clear()
        self.trains.required = False

    def measure(self, budget: TimeBudget, report: Callable[[int], None]) -> Measurement:
        """Time rounds until the stop rule ends them; `report` gets their number after each one.

        VerdictError if an output is wrong or the time is not confirmed; MachineError if the machine
        is too unsteady.
        """
        with self.pool:
            self.begin()
            self.open(budget)
            stop = self._all_rounds(report)
        return self.result(stop)

    def _all_rounds(self, report: Callable[[int], None]) -> StopReason:
        while True:
            try:
                self._prepare(1, 0)
                with self.pool.next_candidate() as calibrator:
                    self.settle(calibrator)
                    return self.add_rounds(calibrator, report)
            except UnlikeInputError as unlike:
                self.begin_again(unlike)

    def open(self, budget: TimeBudget) -> None:
        """Set the time limits; on a GPU, learn the structure of the output if it is unknown."""
        self.deadline, self.share = budget.deadline, budget.share
        self.stop_rule.begin()
        if self.session.on_gpu and self.expected is None:
            self.expected = self.pool.expected = self._discover()

    def add_rounds(self, calibrator: HostCandidate, report: Callable[[int], None]) -> StopReason:
        """Time rounds until the stop rule ends them."""
        while True:
            self._prepare(0, len(self.rounds))
            spent = self.add_round(calibrator)[1]
            report(len(self.rounds))
            awaited = self.reference.is_awaited(self.rounds)
            if stop := self.stop_rule.reason(self.rounds, spent, self.share, awaited=awaited):
                return stop

    def add_round(self, calibrator: HostCandidate) -> tuple[Round, float]:
        """Time one round; return it and how many seconds it took."""
        before = self.deadline.remaining
        timed = self._next_round(calibrator, len(self.rounds))
        self.rounds = self.trains.comparable([*self.rounds, timed])
        return timed, before - self.deadline.remaining

    def result(self, stop: StopReason) -> Measurement:
        """The result of all rounds; VerdictError if the time is not confirmed."""
        measured = clocks.measurement(self.rounds, stop, missed=self.reference.missed(self.rounds))
        if audit := self.stop_rule.audit(self.rounds):
            raise audit
        return measured

    def _prepare(self, others: int, done: int) -> None:
        """On a GPU, start all candidates that are needed before the next precision check."""
        if self.session.on_gpu and not self.pool.waiting:
            self.pool.prepare(self._candidates_needed(others, done))

    def _candidates_needed(self, others: int, done: int) -> int:
        upto = next((look for look in self.policy.looks if look > done), done + 1)
        return min(STARTS_MOST, others + upto - done)

    def _next_round(self, calibrator: HostCandidate, done: int) -> Round:
        """Run one round with the next candidate.

        If its calibration was disturbed or drifted, the round is void and its candidate is killed.
        The submission is the cause only if a trusted kernel in its place then runs undisturbed,
        after each of `BLAMED_MOST` void rounds. Otherwise the machine is at fault.
        """
        blamed = 0
        for _ in range(ROUNDS_VOID_MOST):
            why = SLOWS_AFTER_CALLS
            try:
                result = self._round_and_reference(calibrator, done)
                if not result.drifts(median(result.overheads_during)):
                    return result
            except DisturbedError as error:
                result, why = error.round, RUNS_AFTER_CALLS
            blamed += self._is_calm_without(calibrator, result)
            if blamed == BLAMED_MOST:
                raise VerdictError(Verdict.DISALLOWED, why)
        raise MachineError("the speed of this GPU changes too much to measure a time")

    def _is_calm_without(self, calibrator: HostCandidate, void: Round) -> bool:
        """Whether a trusted kernel in the killed candidate's place runs as before the void round.

        MachineError if something else works on the GPU meanwhile.
        """
        alone = self._overhead_alone(calibrator, void)
        if void.disturbed_by(alone):
            raise MachineError("something else works on this GPU")
        if void.drifts(alone):
            return False
        try:
            with self.pool.next_candidate() as trusted:
                result = self._begin_round(trusted, calibrator)
                while self.samples.needs_more(result, self.share):
                    self._sample(trusted, calibrator, result, trusted=True)
        except (DisturbedError, VerdictError) as error:  # no submitted code ran
            if self.deadline.remaining < 0:  # but the submission has used the time
                raise VerdictError(Verdict.TIMED_OUT, "the time limit passed") from error
            raise MachineError(f"a trusted kernel cannot be timed: {error}") from error
        now = median(result.overheads_during)
        return not (result.drifts(now) or void.drifts(now))

    def _overhead_alone(self, calibrator: HostCandidate, result: Round) -> float:
        """Measure a calibration window after every other candidate of this evaluation has exited.

        After an exit the driver may take a while to free memory, so measure repeatedly.
        """
        self.session.extra_candidates.close()
        self.pool.wait_for_exits()
        now = 0.0
        for _ in range(CALIBRATIONS_ALONE_MOST):
            called = [self._calibration_call(calibrator) for _ in range(CALIBRATIONS)]
            if not result.drifts(now := median(map(calibrator.overhead, called))):
                break
        return now

    def _discover(self) -> values.Node | None:
        """Learn the output's structure from one call; calibration has to write as many bytes."""
        data = self._fresh_input()
        self.adapt(planned(data), None)
        with fresh_candidate(self.session, self.plan, None) as candidate:
            candidate.build(self.deadline)
            exchange = candidate.call(channel.Operation.RUN, data, None, self.deadline)
            verify(candidate, data, exchange.reply, None, deadline=self.deadline)
            return candidate.discovered

    def settle(self, candidate: HostCandidate) -> None:
        """Make untimed calls of a fresh candidate, which only runs trusted code until it builds."""
        candidate.handle.process.may_run = self.session.on_gpu
        with untimed(candidate):
            for _ in range(SETTLING):
                self._calibrated(candidate, waiting=False)

    def _begin_round(self, candidate: HostCandidate, calibrator: HostCandidate) -> Round:
        """Calibrate with a candidate that has not imported the submission."""
        result = Round(
            on_gpu=self.session.on_gpu,
            threads=min(CORES, self.session.request.limits.processes),
            hosted=any(map(values.on_host, values.tensors(self.plan.node))),
            others_ns=OtherProcesses().used_ns,
        )
        self.settle(candidate)
        self.pool.wait_for_exits()  # they could disturb the timing below, as could starts
        self.session.template.spares.await_all()
        with self.session.record_duration("calibrate"):
            self._calibrate(candidate, calibrator, result)
            self.trains.calibrate(candidate, self.expected, self.deadline)
        candidate.handle.process.may_run = False
        return result

    def _round_and_reference(self, calibrator: HostCandidate, done: int) -> Round:
        """Run one round with the next candidate; on the CPU it starts while the reference does."""
        if self.reference.source is not None:
            self.pool.begin(1)
        with self.reference.fresh(self.calibration_input, self.share):
            with self.pool.next_candidate() as candidate:
                result = self._timed_round(candidate, calibrator, done)
                self.session.clocks = candidate.clocks()
            if self.reference.candidate is not None:
                self.pool.wait_for_exits()
                self._time_reference(result)
        return result

    def _timed_round(self, candidate: HostCandidate, calibrator: HostCandidate, done: int) -> Round:
        result = self._begin_round(candidate, calibrator)
        self._time_reference(result)
        with self.session.record_duration("build"):
            candidate.build(self.deadline)
        process, known_processes = candidate.handle.process, frozenset[int]()
        with untimed(candidate):
            for _ in range(WARM_UPS):
                self._call(candidate)
                known_processes = max(known_processes, frozenset(process.descendants), key=len)
        rehearsed = self._rehearse(candidate) if self.session.on_gpu else []
        result.could_train = self.trains.current is not None
        short = candidate.ahead and self.trains.fits_rehearsal(rehearsed, result)

        def overhead() -> float:
            return calibrator.overhead(self._calibration_call(calibrator))

        if short and self.trains.run(candidate, result, overhead):
            return result
        until = self.stop_rule.round_deadline(done, self.share)
        while self.samples.needs_more(result, until):
            self._sample(candidate, calibrator, result, trusted=False)
            refuse_new_processes(known_processes, process.descendants)
        refuse_other_program(process)
        if result.claimed and self.trains.fits(median(result.claims), result.bound):
            self.trains.run(candidate, result, overhead)
        return result

    def _rehearse(self, candidate: HostCandidate) -> list[channel.Exchange]:
        """Check whether calls can be queued ahead; those that wait for the GPU cannot."""
        candidate.ahead = True
        rehearsed = [self._call(candidate) for _ in range(REHEARSALS)]
        candidate.ahead = not rehearsed[-1].late
        return rehearsed

    def _sample(
        self, candidate: HostCandidate, calibrator: HostCandidate, result: Round, *, trusted: bool
    ) -> None:
        """Time one call and calibrate; on a GPU, which changes less, calibrate every other time.

        The call is the submission's or, if `trusted`, the calibration kernel's. It counts only if
        the candidate stayed frozen until the end of calibration; otherwise it could have worked
        then. A busy machine can look the same, so a few such calls are only repeated.
        """
        ran_while_frozen = candidate.handle.process.ran_while_frozen
        call = self._calibration_call if trusted else self._call
        called = with_preparation(call(candidate), result)
        calibration = None
        if len(result.windows) % (CALIBRATED_EVERY if self.session.on_gpu else 1) == 0:
            with self.session.record_duration("calibrate"):
                calibration = self._calibration_call(calibrator, like=self.unlike)
        candidate.handle.verify_frozen(self.deadline)
        if candidate.handle.process.ran_while_frozen > ran_while_frozen:
            why = VerdictError(Verdict.DISALLOWED, RUNS_AFTER_CALLS)
            result.discard(why, called.window_ns)
        elif calibration and result.disturbed_by(calibrator.overhead(calibration)):
            result.discard(DisturbedError(result), called.window_ns)
        elif called.late:
            candidate.ahead = result.discard_late(called.window_ns)
        elif reasons := candidate.slowed_by():
            result.discarded += 1
            self.session.count_slowed(reasons)
        elif not result.leaves_out(
            called.waited_ns, called.window_ns, called.cpu_ns, self.samples.wanted // LEFT_OUT
        ):
            self._add(candidate, calibrator, result, (called, calibration))

    @staticmethod
    def _add(
        candidate: HostCandidate,
        calibrator: HostCandidate,
        result: Round,
        calls: tuple[channel.Exchange, channel.Exchange | None],
    ) -> None:
        """Add a timed call, and the calibration that followed it if there was one."""
        called, calibration = calls
        result.claimed, result.remote = candidate.ahead, candidate.remote
        result.add(called.window_ns, called.reply.claimed_ns, called.cpu_ns)
        if calibration:
            cpu_ns = calibration.cpu_ns - calibration.reply.claimed_cpu_ns
            result.add_calibration(calibrator.overhead(calibration), cpu_ns)

    def _calibrate(
        self, candidate: HostCandidate, calibrator: HostCandidate, result: Round
    ) -> None:
        """Measure the overhead of the calibration candidate and, on a GPU, of this candidate."""
        on_gpu, calls = self.session.on_gpu, []
        for _ in range(CALIBRATIONS if on_gpu else HOST_CALIBRATIONS):
            with untimed(candidate):  # so that something else runs before each
                calibration = self._calibration_call(candidate)
            if on_gpu:
                result.own_overheads.append(candidate.overhead(calibration))
                result.calibration_ns.append(calibration.reply.claimed_ns)
                result.host_waits_ns.append(calibration.host_part_ns)
            calls.append(self._calibration_call(calibrator))
        result.prepared_ns.extend(each.prepared_ns for each in calls)
        overheads = map(calibrator.overhead, calls) if on_gpu else calm_overheads(calibrator, calls)
        result.overheads_before.extend(overheads)
        for _ in range(0 if on_gpu else ECHOES - len(self.echo_cpu_ns)):
            with self._preceding():
                echo = calibrator.echo(self.deadline)
            self.echo_cpu_ns.append(echo.cpu_ns + echo.prepared_ns)
        result.echo_cpu_ns = self.echo_cpu_ns
        for _ in range(WAITING_CALIBRATIONS if on_gpu else 0):
            waiting = self._calibration_call(candidate, waiting=True)
            result.waiting_windows.append(waiting.window_ns - waiting.host_part_ns)

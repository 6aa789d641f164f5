"""Single calls of one workload: each on a fresh input, with a cold cache, and checked.

On the CPU the task's reference is a second kernel, timed before and after the submission in each
round. It is trusted: a fresh candidate that never has the submission's files. It is timed only
while no process of the submission exists, because a frozen one could still slow it, such as by
timers. If it fails, the submission is not at fault and only has no ratio to the reference. If the
submission or a busy machine leaves too little time for it, the time cannot be ranked.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

from runners.contract.task import Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.checks import difference
from runners.harness.judge.host_candidate import HostCandidate, verify
from runners.harness.judge.pool import CandidatePool, fresh_candidate
from runners.harness.judge.session import EvaluationSession, other_session, planned, seed_of
from runners.harness.protocol import channel, scalars, values
from runners.harness.protocol.arena import Plan
from runners.harness.sandbox.process_limits import precedence
from runners.harness.supervision.handle import StartError
from runners.harness.timing import cpu_times, samples, trains
from runners.harness.timing.rounds import CALM_LEAST, Round, waited
from runners.harness.timing.stop_rule import StopRule
from runners.harness.verdicts import VerdictError

WARM_UPS = 3
"""Untimed calls of a fresh candidate on inputs of the same shapes."""
REPEATS_MOST = 2
"""How often a calibration window on the CPU is repeated if it waited for cores, with precedence."""
OWN_WAIT_NS = 200_000
"""The most ns that judge and calibration candidate wait for a core on an idle machine."""
CALL_SHARE = 0.05
"""The most of a workload's time limit that one call of the reference may take, however much of it
the submission has spent."""
REFERENCE_SHARE = 1 / 20
"""The most of a workload's seconds for its rounds that the reference takes before or after one."""
REFERENCE_LEAST = 2
"""The least calls of the reference before and after a round, however long they take."""
STARTS_MOST = 8
"""The most candidates that start at once on a GPU."""
ROOM = 2
"""Candidates on a GPU get memory for inputs this many times as large as one that was too large."""

_Call = tuple[Any, values.Node | None]
"""The input of a call, and the structure of a right output for it."""


class UnlikeInputError(Exception):
    """The candidates on a GPU were not prepared for an input; the timing begins again.

    Only the task's code decides that: its inputs and the structure of its reference's outputs.
    """

    def __init__(self, plan: Plan, expected: values.Node | None) -> None:
        super().__init__()
        self.plan = plan
        self.expected = expected


def calm_overheads(calibrator: HostCandidate, calls: Sequence[channel.Exchange]) -> list[float]:
    """Return the overheads in ns of calibration calls on the CPU that did not wait for cores.

    If too few such calls exist, return the overheads of all calls minus their waiting. The overhead
    is subtracted from every timed call, so one that is too long would make a submission look faster
    than it is.
    """
    waits = [each.least_waited_ns + each.waited_ns for each in calls]
    own = min(OWN_WAIT_NS, *waits)
    pairs = [(each, wait - own) for each, wait in zip(calls, waits, strict=True)]
    calm = [each for each, wait in pairs if not waited(wait, each.window_ns)]
    if len(calm) >= CALM_LEAST:
        return [calibrator.overhead(each) for each in calm]
    return [max(0.0, calibrator.overhead(each) - wait) for each, wait in pairs]


def with_preparation(called: channel.Exchange, result: Round) -> channel.Exchange:
    """Return a call on the CPU with the CPU time by which preparing it took longer than usual.

    Before its input is there, a candidate has to read the request, as in calibration. What else it
    does then, such as in a finalizer of its last output or in a thread, belongs to its work.
    """
    usual_ns = median(result.prepared_ns) if result.prepared_ns else called.prepared_ns
    further = max(0, int(called.prepared_ns - usual_ns))
    return replace(called, window_ns=called.window_ns + further, cpu_ns=called.cpu_ns + further)


@contextmanager
def untimed(candidate: HostCandidate) -> Iterator[None]:
    """Leave the CPU's caches as they are before the calls of this block, which saves time."""
    candidate.cold = False
    yield
    candidate.cold = True


class ReferenceTimer:
    """The reference of one workload; `candidate` is None while there is none to time."""

    def __init__(self, session: EvaluationSession, data: object) -> None:
        self.session = session
        self.plan = planned(data)
        request = session.request
        self.source = None if session.on_gpu else session.code.reference_source(request)
        self.candidate: HostCandidate | None = None
        self.stack = ExitStack()
        self.was_stopped = False
        """Whether it did not fail by itself: its time was over, or it had run before."""
        self.has_run = False
        """Whether a timed call of it has succeeded."""
        limit_s = request.task.timeout_s(request.mode) / len(request.task.timed(request.mode))
        self.call_s = limit_s * CALL_SHARE
        self.withholds_all = False
        """Whether inputs are known to differ in structure, see `HostCandidate`."""

    @contextmanager
    def fresh(self, data: object, share: Deadline) -> Iterator[None]:
        """Start a candidate for one round, if there is a reference, and warm it up."""
        with self.stack:
            if self.source is not None:
                with self._dropped_on_failure(share), self.session.record_duration("reference"):
                    self.candidate = self.stack.enter_context(self._started(self.source, share))
                    with untimed(self.candidate):
                        for _ in range(WARM_UPS):
                            self.call(data, share, None)
            yield
            self.candidate = None

    @contextmanager
    def _started(self, source: str, share: Deadline) -> Iterator[HostCandidate]:
        whole = self.session.request.task.with_all_files_shared
        with other_session(self.session, whole, source) as own:
            apart = replace(own, log=bytearray(), durations_s={})
            with fresh_candidate(apart, self.plan, None) as candidate:
                candidate.trusted = True
                candidate.build(share)
                yield candidate

    def call(self, data: object, share: Deadline, result: Round | None) -> None:
        """Make a call, and add its window to the round; does nothing if there is no candidate."""
        if self.candidate is None:
            return
        deadline = Deadline(min(share.end, Deadline.after(self.call_s).end))
        self.candidate.withholds_all = self.withholds_all
        with self._dropped_on_failure(share):
            exchange = self.candidate.call(channel.Operation.RUN, data, None, deadline)
            if result is not None:
                self.has_run, exchange = True, with_preparation(exchange, result)
                noisy = waited(exchange.waited_ns, exchange.window_ns)
                kept = result.reference_waited if noisy else result.reference_windows
                kept.append(exchange.window_ns)

    @contextmanager
    def _dropped_on_failure(self, share: Deadline) -> Iterator[None]:
        """Stop timing the reference if it fails, such as at its deadline, and end its process."""
        try:
            yield
        except (VerdictError, StartError):
            self.stack.close()
            self.source = self.candidate = None
            self.was_stopped = share.remaining < 0 or self.has_run

    def is_awaited(self, rounds: Sequence[Round]) -> bool:
        """Whether too few of these rounds timed the reference, and further ones can."""
        return self.source is not None and not cpu_times.with_reference(rounds)

    def missed(self, rounds: Sequence[Round]) -> bool:
        """Whether there is no ratio although the reference did not fail.

        Too few of these rounds timed it, or it takes no longer than the clock can distinguish.
        """
        timed = self.source is not None or self.was_stopped
        several = self.session.request.round_policy.looks[-1] > 1
        return timed and several and cpu_times.ratio_to_reference(rounds) is None


class WorkloadCalls:
    """Makes the calls of one workload: the submission's, the reference's and those to calibrate."""

    def __init__(self, session: EvaluationSession, workload: Workload) -> None:
        self.session = session
        self.workload = workload
        self.deadline = self.share = Deadline.after(0)
        self.policy = session.request.round_policy
        slow_calls = samples.SlowCalls(session, workload)
        self.stop_rule = StopRule(session.request, workload, slow_calls, on_cpu=not session.on_gpu)
        self.samples = samples.Samples(
            self.policy, on_cpu=not session.on_gpu, is_slow=slow_calls.is_slow
        )
        self.calibration_input = session.code.generate(
            workload, seed_of(session.nonce, workload, -1)
        )
        self.expected = session.code.expected(self.calibration_input)
        self.plan = planned(self.calibration_input)
        self.varies = False
        """Whether the structure of a right output is known to depend on the input's values."""
        self.usual = scalars.of(self.plan.node)
        self.echo_cpu_ns: list[int] = []
        """On the CPU: as in `Round`; they are measured once."""
        self.unlike: _Call | None = None
        """On the CPU: the latest call, if inputs are known to differ in structure."""
        self.withholds = False
        """Whether the scalars of inputs on a GPU are known to differ, see `DeviceCandidate`."""
        self.index = 0
        self.reference = ReferenceTimer(session, self.calibration_input)
        self.pool = CandidatePool(session, self.plan, self.expected)
        self.trains = trains.ShortCalls(
            session, self.calibration_input, lambda: self._fresh_call()[0]
        )

    def _calibration_call(
        self, candidate: HostCandidate, *, waiting: bool = False, like: _Call | None = None
    ) -> channel.Exchange:
        """Run the calibration kernel; on the CPU again if it waited for other processes.

        Its input is the same in every call or, if another call is given, that one's.
        """
        called = self._calibrated(candidate, waiting=waiting, like=like)
        preceded = precedence.file >= 0 and self.stop_rule.may_precede
        for _ in range(REPEATS_MOST if preceded else 0):
            if not waited(called.waited_ns, called.window_ns):
                break
            called = self._calibrated(candidate, waiting=waiting, like=like)
        return called

    def _calibrated(
        self, candidate: HostCandidate, *, waiting: bool, like: _Call | None = None
    ) -> channel.Exchange:
        data, expected = like or (self.calibration_input, self.expected)
        candidate.told, candidate.withholds_all = not self.varies, self.reference.withholds_all
        with self._preceding():
            touch = channel.Operation.TOUCH
            return candidate.call(touch, data, expected, self.deadline, waiting=waiting)

    def _call(self, candidate: HostCandidate) -> channel.Exchange:
        """Call the submission on a fresh input and check its answer."""
        data, expected = self._fresh_call()
        candidate.told, candidate.withholds = not self.varies, self.withholds
        candidate.withholds_all = self.reference.withholds_all
        launch = self.session.launch_of(self.workload)
        with self.session.record_duration("run"), self._preceding():
            exchange = candidate.call(
                channel.Operation.RUN, data, expected, self.deadline, launch=launch
            )
        self.reference.withholds_all = candidate.withholds_all
        self.unlike = (data, expected) if candidate.withholds_all else None
        if exchange.in_rooms or not exchange.late:  # otherwise nobody knows where the output is
            verify(candidate, data, exchange.reply, expected, deadline=self.deadline)
        return exchange

    def _fresh_call(self) -> _Call:
        """Return a fresh input and the structure of a right output for this very input.

        UnlikeInputError if the present candidates are not prepared for it.
        """
        data = self._fresh_input()
        with self.session.record_duration("check"):
            expected = self.session.code.expected(data)
        if expected is None:
            expected = self.expected
        if self.session.on_gpu and self.adapt(plan := planned(data), expected):
            raise UnlikeInputError(plan, expected)
        return data, expected

    def reserve(self) -> None:
        """Decide by two inputs what the candidates are prepared for; call it before any starts.

        They have no places for trains if the inputs or the outputs differ in structure, because all
        calls of a train share one. An output may then be as large as one of unknown structure.
        """
        data = self._fresh_input()
        plans = self.plan, planned(data)
        self.pool.places = self.trains.reserve(plans, self.expected, STARTS_MOST)
        if self.session.on_gpu:
            self.adapt(plans[1], self.session.code.expected(data))

    def adapt(self, plan: Plan, expected: values.Node | None) -> bool:
        """If an input on a GPU needs it, prepare later candidates for it; return whether it does.

        Each of the four reasons occurs once, or doubles the memory for inputs. All calls of a
        train share one description of the input and one of the output.
        """
        varies = False
        if expected is not None and self.expected is not None and not self.varies:
            varies = difference(self.expected, expected) is not None
        unusual = not self.withholds and not scalars.are_known(plan.node, self.usual)
        larger = plan.device_size > self.plan.device_size
        unlike = self.trains.places > 0 and (varies or plan.node != self.plan.node)
        if unusual:
            self.withholds = True
        if varies:
            self.varies = self.pool.varies = True
            self.pool.expected = None
        if larger:
            self.plan = replace(self.plan, device_size=ROOM * plan.device_size)
            self.pool.plan = self.plan
        if unlike:
            self.trains.places = self.pool.places = 0
        return unusual or varies or larger or unlike

    def _time_reference(self, result: Round) -> None:
        """Time the reference with half as many calls as the round may have, if there is time.

        If some of them waited for other processes, up to twice as many are made.
        """
        until = Deadline.after(self.stop_rule.budget_s * REFERENCE_SHARE)
        wanted, calm = max(REFERENCE_LEAST, self.samples.wanted // 2), result.reference_windows
        enough, next_index = len(calm) + wanted, self.index + 2 * wanted
        with self.session.record_duration("reference"):
            for count in range(2 * wanted):
                late = count >= REFERENCE_LEAST and until.remaining < 0
                if self.reference.candidate is None or late or len(calm) == enough:
                    break
                data = self._fresh_input()
                with self._preceding():
                    self.reference.call(data, self.share, result)
        self.index = next_index  # however many calls were made, later ones get the same inputs

    @contextmanager
    def _preceding(self) -> Iterator[None]:
        """Let a call on the CPU, and only the call, run before other processes."""
        precedence.take(wanted=self.stop_rule.may_precede)
        begin = time.monotonic()
        try:
            yield
        finally:
            precedence.take(wanted=False)
            self.stop_rule.preceded_s += time.monotonic() - begin

    def _fresh_input(self) -> Any:  # noqa: ANN401 - the task's own type
        self.index += 1
        seed = seed_of(self.session.nonce, self.workload, self.index)
        with self.session.record_duration("inputs"):
            return self.session.code.generate(self.workload, seed)

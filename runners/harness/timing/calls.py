"""Single calls of one workload: each on a fresh input, with a cold cache, and checked.

On the CPU the task's reference is a second kernel, timed in turn with the submission on the same
inputs. It is trusted: a fresh candidate that never has the submission's files. If it fails, the
submission is not at fault and only has no ratio to the reference.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch

from runners.contract.task import Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.checks import difference
from runners.harness.judge.host_candidate import HostCandidate, verify
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession, other_session, planned, seed_of
from runners.harness.protocol import channel, values
from runners.harness.sandbox.process_limits import precedence
from runners.harness.supervision.handle import StartError
from runners.harness.timing import samples
from runners.harness.timing.rounds import CALM_LEAST, Round, waited
from runners.harness.timing.stop_rule import StopRule
from runners.harness.verdicts import VerdictError

WARM_UPS = 3
"""Untimed calls of a fresh candidate on inputs of the same shapes."""
FLUSH_BYTES = 32 << 20
"""Bytes that the judge writes before every window, so that no input is in a CPU cache."""
REPEATS_MOST = 2
"""How often a calibration window on the CPU is repeated if it waited for cores, with precedence."""
OWN_WAIT_NS = 200_000
"""The most ns that judge and calibration candidate wait for a core on an idle machine."""
CALL_SHARE = 0.05
"""The most of a workload's time that one call of the reference may take."""


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


class ReferenceTimer:
    """The reference of one workload; `candidate` is None while there is none to time."""

    def __init__(self, session: EvaluationSession, data: object) -> None:
        self.session = session
        self.plan = planned(data)
        self.source = session.code.reference_source(session.request)
        self.candidate: HostCandidate | None = None
        self.spent_s = 0.0
        """Seconds that it has taken in this round."""

    @contextmanager
    def fresh(self, data: object, share: Deadline) -> Iterator[None]:
        """Start a candidate for one round, if there is a reference, and warm it up."""
        self.spent_s = 0.0
        with ExitStack() as stack:
            if self.source is not None and not self.session.on_gpu:
                with self._dropped_on_failure(), self.session.record_duration("reference"):
                    self.candidate = stack.enter_context(self._started(self.source, share))
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
                candidate.build(share)
                yield candidate

    def call(self, data: object, share: Deadline, result: Round | None) -> None:
        """Time a call on the submission's input, if the reference has not taken too long."""
        if self.candidate is None:
            return
        begin = time.monotonic()
        with self._dropped_on_failure():
            deadline = Deadline.after(share.remaining * CALL_SHARE)
            run = channel.Operation.RUN
            exchange = self.candidate.call(run, data, None, deadline)
            if result is not None:
                noisy = waited(exchange.waited_ns, exchange.window_ns)
                kept = result.reference_waited if noisy else result.reference_windows
                kept.append(exchange.window_ns)
        self.spent_s += time.monotonic() - begin

    @contextmanager
    def _dropped_on_failure(self) -> Iterator[None]:
        """Stop timing the reference if it fails, such as at its deadline."""
        try:
            yield
        except (VerdictError, StartError):
            self.source = self.candidate = None


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
            self.policy, noisy=not session.on_gpu, is_slow=slow_calls.is_slow
        )
        flushed = 0 if session.on_gpu else FLUSH_BYTES  # DeviceCandidate flushes the GPU's cache
        self.flush = torch.zeros(flushed, dtype=torch.uint8)
        self.calibration_input = session.code.generate(
            workload, seed_of(session.nonce, workload, -1)
        )
        self.expected = session.code.expected(self.calibration_input)
        self.plan = planned(self.calibration_input)
        self.varies = False
        """Whether the structure of a right output is known to depend on the input's values."""
        self.index = 0
        self.reference = ReferenceTimer(session, self.calibration_input)

    def _calibration_call(
        self, candidate: HostCandidate, *, waiting: bool = False
    ) -> channel.Exchange:
        """Run the calibration kernel; on the CPU again if it waited for other processes."""
        called = self._calibrated(candidate, waiting=waiting)
        for _ in range(REPEATS_MOST if precedence.taken else 0):
            if not waited(called.waited_ns, called.window_ns):
                break
            called = self._calibrated(candidate, waiting=waiting)
        return called

    def _calibrated(self, candidate: HostCandidate, *, waiting: bool) -> channel.Exchange:
        self._flush()
        return candidate.call(
            channel.Operation.TOUCH,
            self.calibration_input,
            self.expected,
            self.deadline,
            waiting=waiting,
        )

    def _call(self, candidate: HostCandidate, result: Round | None = None) -> channel.Exchange:
        """Call the submission and, in timed calls, the reference before or after it in turn."""
        data = self._fresh_input()
        expected = self.session.code.expected(data) if self.varies else self.expected
        reference_first = self.index % 2 == 0
        if reference_first:
            self._call_reference(data, result)
        with self.session.record_duration("run"):
            self._flush()
            launch = self.session.launch_of(self.workload)
            exchange = candidate.call(
                channel.Operation.RUN, data, expected, self.deadline, launch=launch
            )
        if not reference_first:
            self._call_reference(data, result)
        if not exchange.late:  # a late call does not count, and its output is not read
            expected = self._expected_for(exchange.reply.output, data, expected)
            verify(candidate, data, exchange.reply, expected, deadline=self.deadline)
        return exchange

    def _expected_for(
        self, output: values.Node | None, data: object, expected: values.Node | None
    ) -> values.Node | None:
        """Return the structure with which this output is compared: the reference's for this input.

        It is computed only for an output that differs from `expected`, that of another input.
        """
        if self.varies or expected is None or output is None or not difference(expected, output):
            return expected
        with self.session.record_duration("check"):
            return self.session.code.expected(data)

    def _call_reference(self, data: object, result: Round | None) -> None:
        """Time the reference on this input, unless it has taken half of the round's time."""
        if result is None or self.reference.candidate is None:
            return
        with self.session.record_duration("reference"):
            if not result.reference_windows or 2 * self.reference.spent_s < self.samples.round_s:
                self._flush()
                self.reference.call(data, self.share, result)

    def _flush(self) -> None:
        """Before a call on the CPU, flush its caches and let it run before other processes."""
        if not self.session.on_gpu:
            self.flush.add_(1)
            precedence.take(wanted=self.stop_rule.may_precede)

    def _fresh_input(self) -> Any:  # noqa: ANN401 - the task's own type
        self.index += 1
        seed = seed_of(self.session.nonce, self.workload, self.index)
        with self.session.record_duration("inputs"):
            return self.session.code.generate(self.workload, seed)

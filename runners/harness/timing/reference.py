"""The task's reference as a second kernel, timed in turn with the submission on the same inputs.

It is trusted: a fresh candidate that never has the submission's files. Whatever goes wrong with it
is no fault of the submission, which then has no speed-up of its own.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from runners.contract.task import Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession, other_session
from runners.harness.protocol import channel
from runners.harness.protocol.arena import Plan
from runners.harness.supervision.handle import StartError
from runners.harness.timing.rounds import Round, waited
from runners.harness.verdicts import VerdictError

CALL_SHARE = 0.05
"""The most of a workload's time that one call of the reference may take."""


class Reference:
    """The reference of one workload; `candidate` is None while there is none to time."""

    def __init__(self, session: EvaluationSession, workload: Workload, plan: Plan) -> None:
        self.session = session
        self.workload = workload
        self.plan = plan
        self.source = None if session.on_gpu else session.code.reference_source(session.request)
        self.candidate: HostCandidate | None = None
        self.spent_s = 0.0
        """How long it took in this round."""

    @contextmanager
    def fresh(self, data: object, share: Deadline) -> Iterator[None]:
        """Start a candidate for one round, if there is a reference, and call it once."""
        self.spent_s = 0.0
        with ExitStack() as stack:
            if self.source is not None and not self.session.on_gpu:
                with self._forgiving(), self.session.record_duration("reference"):
                    self.candidate = stack.enter_context(self._started(self.source, share))
                    self.call(data, share, None)
            yield
            self.candidate = None

    @contextmanager
    def _started(self, source: str, share: Deadline) -> Iterator[HostCandidate]:
        task = self.session.request.task
        whole = task.model_copy(update={"shared_files": tuple(task.files)})
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
        with self._forgiving():
            deadline = Deadline.after(share.remaining * CALL_SHARE)
            run = channel.Operation.RUN
            exchange = self.candidate.call(run, data, None, deadline)
            if result is not None:
                noisy = waited(exchange.waited_ns, exchange.window_ns)
                kept = result.reference_waited if noisy else result.reference_windows
                kept.append(exchange.window_ns)
        self.spent_s += time.monotonic() - begin

    @contextmanager
    def _forgiving(self) -> Iterator[None]:
        """Give up the reference if it fails, such as at its deadline."""
        try:
            yield
        except (VerdictError, StartError):
            self.source = self.candidate = None

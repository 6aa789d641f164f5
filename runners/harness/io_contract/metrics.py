"""Collects `ncu`'s hardware counters of one call of each kernel, after all checks and timing.

They affect no verdict and no time. A failure is only logged.
"""

from contextlib import suppress

from runners.contract.files import EvaluationFile, fit
from runners.contract.io_contract import COUNTERS, UNCOUNTED, side_of
from runners.contract.task import Mode
from runners.harness.deadline import Deadline
from runners.harness.judge.session import EvaluationSession
from runners.harness.profile.kernel_profile import KernelProfiler, NoProfileError
from runners.harness.toolchains import ncu
from runners.harness.verdicts import GradingResult, VerdictError

BEGINS = '"ID"'
"""The beginning of the header row of the counters; messages come before it."""


def count(session: EvaluationSession, grade: GradingResult, deadline: Deadline) -> None:
    """Store the counters of every timed kernel of a ranked run as files of the evaluation."""
    if session.request.mode is not Mode.RANKED or not grade.passed:
        return
    if not session.on_gpu:
        _note(session, "there is no GPU here")
        return
    try:
        found = ncu.here()
    except ncu.UnusableError as error:
        _note(session, str(error))
        return
    _count_by(session, found, deadline)


def _count_by(session: EvaluationSession, found: ncu.Ncu, deadline: Deadline) -> None:
    for workload in session.request.task.timed(session.request.mode):
        profiler = KernelProfiler(session.code.session_for(session, workload), found)
        try:
            counters = profiler.count_call(workload, deadline)
        except (NoProfileError, VerdictError) as error:
            _note(session, f"{workload.spec}: {error}")
            continue
        _keep(session, COUNTERS[side_of(workload)], counters)


def _keep(session: EvaluationSession, name: str, counters: str) -> None:
    begin = counters.find(BEGINS)
    if begin < 0:
        _note(session, f"{name} has no counters")
        return
    with suppress(ValueError):
        file = EvaluationFile.of(name, counters[begin:].encode())
        if fit([*session.files, file]):
            session.files.append(file)
            return
    _note(session, f"{name} is larger than can travel")


def _note(session: EvaluationSession, why: str) -> None:
    session.keep_log(f"\n{UNCOUNTED}{why}\n".encode())

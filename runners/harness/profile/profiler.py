"""Profiles a submission after all checks: with torch's profiler, and on a GPU also with `ncu`.

No profile affects a verdict or a time. A failure of `ncu` is only logged.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from runners.contract.files import PACKED_MAX, EvaluationFile, fit
from runners.contract.io_contract import COUNTERS, UNCOUNTED, side_of
from runners.contract.task import PROFILE_S, Mode, Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.host_candidate import verify
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession, planned, seed_of
from runners.harness.profile.kernel_profile import KernelProfile, KernelProfiler, NoProfileError
from runners.harness.protocol.channel import Operation
from runners.harness.sandbox.diagnostics import truncated
from runners.harness.timing.calls import WARM_UPS
from runners.harness.toolchains import ncu
from runners.harness.verdicts import GradingResult, VerdictError

ProfileCase = Callable[[KernelProfiler, Workload, Deadline], KernelProfile]
"""A function that profiles the kernels of one case."""


def profile(session: EvaluationSession, workload: Workload, deadline: Deadline) -> None:
    """Profile one warm, checked call with torch's profiler in a fresh candidate.

    Later candidates reuse what the first one compiled, because all of them see only public inputs.
    VerdictError if the output is wrong.
    """
    data = session.code.generate(workload, seed_of(session.nonce, workload, 0))
    expected = session.code.expected(data)
    first = not session.builds.packed
    with fresh_candidate(session, planned(data), expected) as candidate:
        candidate.build(deadline)
        launch = session.launch_of(workload)
        for _ in range(WARM_UPS):
            candidate.call(Operation.RUN, data, expected, deadline, launch=launch)
        exchange = candidate.call(Operation.PROFILE, data, expected, deadline, launch=launch)
        verify(candidate, data, exchange.reply, expected, deadline=deadline)
        if first:
            with suppress(VerdictError):  # without the files every candidate compiles for itself
                candidate.pack(deadline)
                session.builds.packed = True
    if first:
        session.builds.seal()


def profile_kernels(
    session: EvaluationSession,
    workloads: Sequence[Workload],
    profile_case: ProfileCase = KernelProfiler.profile_call,
) -> None:
    """Add the results of `ncu` to the log and the files, or a line that says why there are none."""
    if not session.on_gpu:
        return
    try:
        found = ncu.here()
    except ncu.UnusableError as error:
        session.add_to_log(f"no kernel was profiled by {ncu.NAME}: {error}\n".encode())
        return
    profile_by(KernelProfiler(session, found), workloads, profile_case)


def profile_by(
    profiler: KernelProfiler,
    workloads: Sequence[Workload],
    profile_case: ProfileCase = KernelProfiler.profile_call,
) -> None:
    """Profile one call on each workload, as far as their common time limit allows.

    The submission has already passed; no failure here changes that.
    """
    deadline = Deadline.after(PROFILE_S)
    session = profiler.session
    lists: dict[str, str] = {}
    for number, workload in enumerate(workloads, 1):
        head = f"\n{ncu.NAME} {profiler.ncu.version}, {workload.spec}:\n"
        try:
            profiled = profile_case(profiler, workload, deadline)
        except (NoProfileError, VerdictError) as error:
            session.add_to_log(f"{head}no profile: {error}\n".encode())
            continue
        report_line = _add_report(session, f"case-{number}.ncu-rep", profiled.report)
        lists[f"case-{number}.csv"] = profiled.listed
        used = len(session.log) + len(f"{head}{report_line}".encode())
        left = session.request.limits.output - used
        share = max(0, left // (len(workloads) - number + 1))
        session.add_to_log(f"{head}{_text(profiled, share)}{report_line}".encode())
    for name, listed in lists.items():  # only as far as they fit; the reports contain them too
        if listed:
            _add_file(session, name, listed.encode())


def _text(profiled: KernelProfile, most: int) -> str:
    if profiled.fault:
        return truncated(f"{profiled.fault}\n", most)
    return profiled.tables.text(most)


def _add_report(session: EvaluationSession, name: str, report: bytes) -> str:
    """Add a report to the files if it fits; return the log line about it."""
    file = _add_file(session, name, report)
    if file is None:
        most = f"all reports of an evaluation may have {PACKED_MAX >> 20} MiB together, packed"
        return f"{name} of {len(report) / 2**20:.1f} MiB is left out: {most}\n"
    sizes = f"{len(report) / 2**20:.1f} MiB, {file.packed_size / 2**20:.1f} MiB packed"
    return f"the whole report is {name} ({sizes}), for Nsight Compute\n"


def _add_file(session: EvaluationSession, name: str, content: bytes) -> EvaluationFile | None:
    """Add a file to those of the evaluation and return it; None if it does not fit."""
    with suppress(ValueError):  # one file alone is too large
        file = EvaluationFile.of(name, content)
        if fit([*session.files, file]):
            session.files.append(file)
            return file
    return None


_CSV_BEGIN = '"ID"'
"""The beginning of the counters' header row; before it are messages of the profiler."""


def collect_counters(session: EvaluationSession, grade: GradingResult, deadline: Deadline) -> None:
    """Store the counters of every timed kernel of a ranked run as files of the evaluation."""
    if session.request.mode is not Mode.RANKED or not grade.passed:
        return
    if not session.on_gpu:
        _note_uncounted(session, "there is no GPU here")
        return
    try:
        found = ncu.here()
    except ncu.UnusableError as error:
        _note_uncounted(session, str(error))
        return
    _count_by(session, found, deadline)


def _count_by(session: EvaluationSession, found: ncu.Ncu, deadline: Deadline) -> None:
    for workload in session.request.task.timed(session.request.mode):
        profiler = KernelProfiler(session.code.session_for(session, workload), found)
        try:
            counters = profiler.count_call(workload, deadline)
        except (NoProfileError, VerdictError) as error:
            _note_uncounted(session, f"{workload.spec}: {error}")
            continue
        _add_counters(session, COUNTERS[side_of(workload)], counters)


def _add_counters(session: EvaluationSession, name: str, counters: str) -> None:
    begin = counters.find(_CSV_BEGIN)
    if begin < 0:
        _note_uncounted(session, f"{name} has no counters")
    elif _add_file(session, name, counters[begin:].encode()) is None:
        _note_uncounted(session, f"{name} is too large to be sent with the evaluation")


def _note_uncounted(session: EvaluationSession, why: str) -> None:
    session.add_to_log(f"\n{UNCOUNTED}{why}\n".encode())

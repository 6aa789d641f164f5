"""The native grader: tests in one candidate, then timed rounds in fresh ones."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from runners.contract.comparison import PAIRS_LEAST, Comparison
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Measurement
from runners.contract.task import Mode, TaskDefinition, TaskFormat, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline, TimeBudget
from runners.harness.io_contract.reference import ContractTask, read_contract
from runners.harness.judge import host_candidate, kernelbench, pool
from runners.harness.judge.session import EvaluationSession, TaskCode, public_seed
from runners.harness.judge.task_code import KernelTask
from runners.harness.profile.profiler import profile, profile_kernels
from runners.harness.protocol import arena, channel
from runners.harness.timing import pairs
from runners.harness.timing.calls import STARTS_MOST
from runners.harness.timing.pairs import PairedTimer, Rival
from runners.harness.timing.stopwatch import WorkloadTimer
from runners.harness.verdicts import STAGES, GradingResult, RivalFailedError, VerdictError, skipped

PACK_S = 10.0
"""Seconds in which a candidate must have stored compiled code."""


def task_code(folder: Path, task: TaskDefinition, *, on_gpu: bool) -> TaskCode:
    """Load the task's reference into the judge; VerdictError if the task needs several GPUs."""
    if task.multi_gpu:
        raise VerdictError(
            Verdict.TASK_ERROR, "grader 'native' judges on one GPU; this task needs 'popcorn'"
        )
    match task.format:
        case TaskFormat.KERNEL:
            return KernelTask(folder)
        case TaskFormat.KERNELBENCH:
            return kernelbench.KernelBenchTask(folder, on_gpu=on_gpu)
        case TaskFormat.IO_CONTRACT:
            return ContractTask(read_contract(folder), on_gpu=on_gpu)


def grade(session: EvaluationSession) -> GradingResult:
    """Run the cases of the request's mode until one fails."""
    with session.code.opened(session):
        result = _grade(session)
        session.attribute_lack_of_memory(result)
        session.code.after(session, result)
        return result


def _grade(session: EvaluationSession) -> GradingResult:
    task, mode = session.request.task, session.request.mode
    result = GradingResult()
    tests = task.tests if mode in (Mode.TEST, Mode.RANKED) else ()
    timed = _Timed(task.timed(mode), task.timeout_s(mode))
    compared = session.request.rival is not None and task.format is not TaskFormat.IO_CONTRACT
    if compared:  # its rounds are checked by how many processes compute on the GPU
        session.template.spares.close()
    else:
        pool.start_spares(session, _early_candidates(session, tests, timed))
    try:
        with ExitStack() as stack:
            _start_first(session, tests, timed, stack)
            if session.on_gpu and timed.workloads and not compared:
                _start_early(session, timed, stack)
            _first_candidate(session, result, tests, timed)
            if compared:
                result.comparison = Comparison(rival_verdict=Verdict.PASSED)
            rival = _rival(session, tests, timed, stack) if compared and result.passed else None
            _run_benchmarks(session, result, timed, rival)
            if rival is not None:
                result.comparison = rival.comparison(passed=result.passed)
    except VerdictError:  # such as the alarm while a candidate is killed
        if result.passed:
            raise
    if mode is Mode.PROFILE:
        _profile(session, result)
    return result


class _Timed:
    """The workloads to be timed, their common deadline, and what was started early."""

    def __init__(self, workloads: tuple[Workload, ...], seconds: float) -> None:
        self.workloads = workloads
        self.seconds = seconds
        self.deadline = Deadline.after(seconds)
        self.failed: dict[int, VerdictError] = {}
        """The number of a workload -> why the first candidate's call on it failed."""
        self.first: pool.CandidatePool | None = None
        """The pool of the first candidate; None if none is needed."""
        self.early: WorkloadTimer | None = None
        """The timer of the first workload; its candidates start while the tests still run."""


def _rival(
    session: EvaluationSession, tests: tuple[Workload, ...], timed: _Timed, stack: ExitStack
) -> Rival:
    """Build and test the rival, with time limits of its own; `stack` ends its session."""
    own, begin = _Timed(timed.workloads, timed.seconds), time.monotonic()
    rival, result = Rival(session, own.deadline), GradingResult()
    try:
        rival.session = stack.enter_context(pairs.rival_session(session))
        pairs.of_rival(lambda: _start_first(rival.session, tests, own, stack))
        until = Deadline.after(session.request.task.limit_s(session.request.mode))
        pairs.of_rival(lambda: _first_candidate(rival.session, result, tests, own), until)
    except RivalFailedError as failed:
        rival.failed = failed.error
    else:
        rival.failed = next(iter(own.failed.values()), None)
    if not result.passed:
        rival.failed = VerdictError(result.verdict, result.message)
    rival.deadline = own.deadline
    timed.deadline = Deadline(timed.deadline.end + time.monotonic() - begin)
    return rival


def _start_first(
    session: EvaluationSession, tests: tuple[Workload, ...], timed: _Timed, stack: ExitStack
) -> None:
    """Start the first candidate without waiting, if there are any cases; `stack` ends it.

    It starts before all others, because the driver creates one context at a time: it tests while
    the others start. If nothing is tested and only one round is timed, there is none: the round's
    candidate builds the submission for itself, and gets no file to write to.
    """
    if _has_first_candidate(session, tests, timed):
        plan = _first_plan(session, (*tests, *timed.workloads))
        timed.first = pool.CandidatePool(session, plan, None)
        stack.enter_context(timed.first).begin(1)
    elif timed.workloads:
        session.builds.seal()


def _has_first_candidate(
    session: EvaluationSession, tests: tuple[Workload, ...], timed: _Timed
) -> bool:
    """Return whether there is a first candidate, which is not timed."""
    one_round = len(timed.workloads) == session.request.round_policy.looks[-1] == 1
    return bool(tests) or (bool(timed.workloads) and not one_round)


def _early_candidates(
    session: EvaluationSession, tests: tuple[Workload, ...], timed: _Timed
) -> int:
    """Return how many candidates `_start_first` and `_start_early` start."""
    rounds = min(STARTS_MOST, 1 + session.request.round_policy.looks[0])  # one is for calibration
    return _has_first_candidate(session, tests, timed) + (rounds if timed.workloads else 0)


def _start_early(session: EvaluationSession, timed: _Timed, stack: ExitStack) -> None:
    """Start the first workload's candidates, without the submission; `stack` ends them."""
    with suppress(VerdictError):  # `_run_benchmarks` meets the same error again
        first = timed.workloads[0]
        timed.early = WorkloadTimer(session.code.session_for(session, first), first)
        stack.enter_context(timed.early.pool)
        timed.early.begin()


def _first_candidate(
    session: EvaluationSession, result: GradingResult, tests: tuple[Workload, ...], timed: _Timed
) -> None:
    """Build the submission, run the tests, and rehearse the timed workloads.

    Later candidates reuse the compiled code, so this one sees only public inputs.
    """
    if timed.first is None:
        return
    deadline = session.code.deadline(session.request.task.test_timeout)
    with timed.first, timed.first.next_candidate() as candidate:
        if not _build(session, candidate, result, deadline):
            result.cases += [skipped(CaseKind.TEST, workload) for workload in tests]
            return
        for number, workload in enumerate(tests, 1):
            step = _test(session, candidate, workload, deadline)
            _case(session, result, CaseKind.TEST, workload, step=step)
            if result.passed:
                session.report_progress(Stage.TEST, number, len(tests))
        timed.deadline = session.code.deadline(timed.seconds)
        if result.passed and timed.workloads:
            with session.record_duration("rehearse"):
                _rehearse(session, candidate, timed)
    if not session.builds.seal() and timed.early:
        timed.early.pool.close()  # its candidates have the old file, still writable


def _rehearse(
    session: EvaluationSession, candidate: host_candidate.HostCandidate, timed: _Timed
) -> None:
    """Call the kernel once on a public input of each timed workload, then store compiled code.

    The first call that fails ends this; its error is raised when that workload is timed.
    """
    for number, workload in enumerate(timed.workloads):
        if session.code.session_for(session, workload) is not session:
            continue
        try:
            data = session.code.generate(workload, public_seed(session.request.task, workload))
            expected = session.code.expected(data)
            launch = session.launch_of(workload)
            with session.record_duration("run"):
                candidate.call(channel.Operation.RUN, data, expected, timed.deadline, launch=launch)
        except VerdictError as error:
            timed.failed[number] = session.attributed(error)
            return
    with suppress(VerdictError), session.record_duration("run"):  # else each compiles for itself
        candidate.pack(Deadline.after(min(PACK_S, timed.deadline.remaining)))
        session.builds.packed = True


def _first_plan(session: EvaluationSession, workloads: tuple[Workload, ...]) -> arena.Plan:
    """A layout that suffices for each case; empty on the CPU, where arenas are sparse."""
    if not session.on_gpu:
        return arena.covering(())
    code, task = session.code, session.request.task
    plans = (code.plan(each, public_seed(task, each)) for each in workloads)
    return code.first_plan(arena.covering([plan for plan in plans if plan is not None]))


def _build(
    session: EvaluationSession,
    candidate: host_candidate.HostCandidate,
    result: GradingResult,
    deadline: Deadline,
) -> bool:
    session.report_progress(Stage.BUILD, 0, 1)
    try:
        with session.record_duration("build"):
            candidate.build(deadline)
    except VerdictError as error:
        result.fail(Stage.BUILD, error)
    return result.passed


def _test(
    session: EvaluationSession,
    candidate: host_candidate.HostCandidate,
    workload: Workload,
    deadline: Deadline,
) -> Callable[[], None]:
    def step() -> None:
        with session.record_duration("inputs"):
            data = session.code.generate(workload, public_seed(session.request.task, workload))
            expected = session.code.expected(data)
        with session.record_duration("run"):
            launch = session.launch_of(workload)
            exchange = candidate.call(
                channel.Operation.RUN, data, expected, deadline, launch=launch
            )
        host_candidate.verify(candidate, data, exchange.reply, expected, deadline=deadline)

    return step


def _run_benchmarks(
    session: EvaluationSession, result: GradingResult, timed: _Timed, rival: Rival | None
) -> None:
    workloads, code = timed.workloads, session.code
    cap = session.request.round_policy.looks[-1]
    for number, workload in enumerate(workloads):

        def report(rounds: int, before: int = number * cap) -> None:
            session.report_progress(Stage.TIMING, before + rounds, cap * len(workloads))

        def step(
            workload: Workload = workload,
            left: int = len(workloads) - number,
            number: int = number,
            report: Callable[[int], None] = report,
        ) -> Measurement:
            if number in timed.failed:
                raise timed.failed[number]
            budget = _budget(timed.deadline, left)
            with code.attributing(workload, timed.deadline):
                early = timed.early if number == 0 else None
                timer = early or WorkloadTimer(code.session_for(session, workload), workload)
                if rival is None or rival.failed is not None:
                    return timer.measure(budget, report)
                return _compare(timer, timed, rival, report)

        _case(session, result, CaseKind.BENCHMARK, workload, step=step)


def _budget(deadline: Deadline, left: int, more_s: float = 0.0) -> TimeBudget:
    """Return an equal share of the time left; the timeout is `more_s` seconds after `deadline`."""
    return TimeBudget(Deadline(deadline.end + more_s), Deadline.after(deadline.remaining / left))


def _compare(
    timer: WorkloadTimer, timed: _Timed, rival: Rival, report: Callable[[int], None]
) -> Measurement:
    """Time a workload in pairs of rounds; both get enough time for `PAIRS_LEAST` pairs."""
    more_s = (PAIRS_LEAST - 1) * timed.seconds
    theirs = WorkloadTimer(rival.session, timer.workload)
    left = len(timed.workloads) - len(rival.ratios)
    ours, its = (_budget(each.deadline, left, more_s) for each in (timed, rival))
    measured, found = PairedTimer(timer, theirs).measure(ours, its, report)
    timed.deadline = Deadline(timer.deadline.end - more_s)
    rival.deadline = Deadline(theirs.deadline.end - more_s)
    if isinstance(found, VerdictError):
        rival.failed = found
    else:
        rival.ratios.append(found)
    return measured


def _profile(session: EvaluationSession, result: GradingResult) -> None:
    code, workloads = session.code, session.request.task.benchmarks
    deadline = Deadline.after(session.request.task.benchmark_timeout)
    for number, workload in enumerate(workloads, 1):

        def step(workload: Workload = workload) -> None:
            with code.attributing(workload, deadline):
                profile(code.session_for(session, workload), workload, deadline)

        _case(session, result, CaseKind.PROFILE, workload, step=step)
        if result.passed:
            session.report_progress(Stage.TIMING, number, len(workloads))
    if result.passed:
        in_this_session = [each for each in workloads if code.session_for(session, each) is session]
        profile_kernels(session, in_this_session)


def _case(
    session: EvaluationSession,
    result: GradingResult,
    kind: CaseKind,
    workload: Workload,
    *,
    step: Callable[[], Measurement | None],
) -> None:
    if not result.passed:
        result.cases.append(skipped(kind, workload))
        return
    status, message, measured = CaseStatus.PASSED, "", None
    if session.watch is not None:
        session.watch.stage = STAGES[kind]
    try:
        measured = step()
    except VerdictError as found:
        error = session.attributed(found)
        result.fail(STAGES[kind], error)
        status, message = CaseStatus.FAILED, error.message
    result.cases.append(
        CaseResult(
            spec=workload.spec, kind=kind, status=status, message=message, measurement=measured
        )
    )

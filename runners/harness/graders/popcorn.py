"""The popcorn grader: runs the task's own eval.py or eval.cu by the protocol of KernelBot's tasks.

That program runs the submission, creates the inputs, compares and times, in processes of one user.
This folder's README says which attacks of a submission are prevented and which are not.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from runners.contract import evaluation
from runners.contract.task import Mode, TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge.session import EvaluationSession, TaskCode, candidate_files
from runners.harness.kernelbot import executable, stream
from runners.harness.kernelbot.executable import compiled
from runners.harness.profile.kernel_profile import KernelProfile, KernelProfiler
from runners.harness.profile.profiler import profile_kernels
from runners.harness.sandbox import program as programs
from runners.harness.sandbox.program import Prelude, Program, own_script, visible_gpus
from runners.harness.supervision.watched_program import ProgramExit, WatchedProgram
from runners.harness.timing.intervals import t_quantile
from runners.harness.verdicts import STAGES, GradingResult, VerdictError, printable, skipped

CASES_FILE = "popcorn-cases.txt"
PRELUDE_S = 120.0
"""The most seconds for running the submission alone before a phase."""
_BUILDS_INLINE = ("cpp_extension", "load_inline")
"""Names of torch in a source that compiles when it is imported."""
_RAISING_SUBMISSION = "def custom_kernel(*_, **__):\n    raise NotImplementedError\n"
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
_NO_MULTICAST = {
    "NCCL_NVLS_ENABLE": "0",
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
}
"""Disables NVLink multicast: all GPUs of a fabric share it, and killing a phase may break it."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """One phase: its cases, seed and deadline."""

    step: stream.Step
    kind: evaluation.CaseKind
    cases: tuple[Workload, ...]
    seed: int | None
    deadline: Deadline


def task_code(_folder: Path, task: TaskDefinition, **_: object) -> TaskCode | None:
    """Return None: the judge loads no task code. VerdictError if the task has no program."""
    if (own := stream.own_evaluation(task)) not in task.files:
        raise VerdictError(Verdict.TASK_ERROR, f"the task has no {own!r} for grader 'popcorn'")
    return None


def grade(session: EvaluationSession) -> GradingResult:
    """Run the phases of the request's mode, each in a fresh sandbox, until one fails."""
    session.timing, session.transport = evaluation.Timing.IN_PROCESS, "none"
    result = GradingResult()
    with ExitStack() as stack:
        program = None
        if session.request.task.is_program:
            try:
                program = stack.enter_context(compiled(session))
            except VerdictError as error:
                result.fail(Stage.BUILD, error)
        for phase in _phases(session):
            if result.passed:
                _run(session, phase, _program(session, phase, program), result)
            else:
                result.cases += [skipped(phase.kind, case) for case in phase.cases]
        if program is not None and result.passed and session.request.mode is Mode.PROFILE:
            _profile_kernels(session, program)
    return result


def _profile_kernels(session: EvaluationSession, program: int) -> None:
    """Profile the program on each case; the program itself marks the call to profile."""
    task = session.request.task

    def profile_case(profiler: KernelProfiler, case: Workload, deadline: Deadline) -> KernelProfile:
        run = _Phase(stream.Step.PROFILE, evaluation.CaseKind.PROFILE, (case,), task.seed, deadline)
        return profiler.profile_program(_program(session, run, program), deadline)

    profile_kernels(session, task.benchmarks, profile_case)


def secret_seed(nonce: bytes) -> int:
    """Return the seed that is combined with ranked cases' seeds; below 2^31, as in KernelBot."""
    digest = hashlib.blake2b(b"popcorn", key=nonce[:64], digest_size=8).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF


def _phases(session: EvaluationSession) -> Iterator[_Phase]:
    task, mode = session.request.task, session.request.mode
    if mode in (Mode.TEST, Mode.RANKED) and task.tests:
        end = Deadline.after(task.test_timeout)
        yield _Phase(stream.Step.TEST, evaluation.CaseKind.TEST, task.tests, task.seed, end)
    end = Deadline.after(task.timeout_s(mode))
    if mode is Mode.PROFILE:
        for case in task.benchmarks:
            yield _Phase(stream.Step.PROFILE, evaluation.CaseKind.PROFILE, (case,), task.seed, end)
    ranked = mode is Mode.RANKED
    if timed := task.timed(mode):
        step = stream.Step.LEADERBOARD if ranked else stream.Step.BENCHMARK
        seed = secret_seed(session.nonce) if ranked else task.seed
        yield _Phase(step, evaluation.CaseKind.BENCHMARK, timed, seed, end)


def _run(session: EvaluationSession, phase: _Phase, order: Program, result: GradingResult) -> None:
    stage, total = STAGES[phase.kind], len(phase.cases)
    session.report_progress(stage, 0, total)
    printed = bytearray()
    watched = _watched(session, order, printed)
    reported: tuple[stream.ReportedCase, ...] = ()
    try:
        with session.record_duration(phase.step.value):
            ended = watched.run(phase.deadline)
        task, own_fault = (
            session.request.task,
            _fails_without_submission(session, phase, order, ended.status),
        )
        reported = _answer(ended, phase, printed, task, own_fault=own_fault)
        if wrong := next((case for case in reported if not case.passed), None):
            result.fail(stage, VerdictError(Verdict.WRONG_ANSWER, wrong.message))
    except VerdictError as error:
        result.fail(stage, error)
        begun = stream.finished_cases(bytes(watched.result), phase.step, total)
        passed = [case for case in begun if case.passed]
        failed = stream.ReportedCase(passed=False, message=error.message)
        reported = (*passed[: total - 1], failed)
    finally:
        session.add_to_log(bytes(printed))
    session.add_to_log("".join(case.report for case in reported).encode())
    pairs = zip(phase.cases, reported, strict=False)
    result.cases += [_result(phase.kind, *pair) for pair in pairs]
    result.cases += [skipped(phase.kind, case) for case in phase.cases[len(reported) :]]
    if result.passed:
        session.report_progress(stage, total, total)


def _watched(session: EvaluationSession, order: Program, printed: bytearray) -> WatchedProgram:
    start = session.template.start if order.script else programs.start
    return WatchedProgram(order, printed, session.record_sandbox, start)


def _fails_without_submission(
    session: EvaluationSession, phase: _Phase, order: Program, status: int
) -> bool:
    """Return whether the evaluation exits with this error status without the submission too.

    The evaluation is run again, with a submission that only raises an exception. A program
    would have to be compiled again for that, so its statuses always count as the submission's.
    """
    task = session.request.task
    if status not in stream.OWN_ERRORS or task.is_program:
        return False
    files = {**order.files, task.submission_file: _RAISING_SUBMISSION}
    again = _watched(session, replace(order, files=files, prelude=None), bytearray())
    try:
        return again.run(phase.deadline).status == status
    except VerdictError:
        return False


def _answer(
    ended: ProgramExit, phase: _Phase, printed: bytearray, task: TaskDefinition, *, own_fault: bool
) -> tuple[stream.ReportedCase, ...]:
    if ended.status not in stream.RAN:
        log = printed.decode(errors="replace").strip() or stream.error_text(ended.result)
        raise stream.error_of_evaluation(ended.status, log, task, own_fault=own_fault)
    try:
        return stream.read(ended.result, phase.step, len(phase.cases))
    except stream.UnfinishedError as error:
        message = f"the evaluation exited with status {ended.status} and its result {error}"
        raise VerdictError(Verdict.CRASHED, message) from error
    except stream.BreachError as error:
        raise VerdictError(Verdict.DISALLOWED, f"the evaluation's result {error}") from error


def _result(
    kind: evaluation.CaseKind, workload: Workload, case: stream.ReportedCase
) -> evaluation.CaseResult:
    return evaluation.CaseResult(
        spec=workload.spec,
        kind=kind,
        status=evaluation.CaseStatus.PASSED if case.passed else evaluation.CaseStatus.FAILED,
        message="" if case.passed else printable(case.message),
        measurement=_measurement(case.times) if case.passed and case.times else None,
    )


def _measurement(times: stream.Times) -> evaluation.Measurement:
    """The reported time; nothing confirms it, so its resolution is the whole time."""
    half_width = times.mean
    if times.runs > 1 and times.err is not None:
        half_width = t_quantile(times.runs - 1) * times.err
    return evaluation.Measurement(
        time_ns=times.mean,
        half_width_ns=half_width,
        bound_ns=0.0,
        resolution_ns=times.mean,
        rounds=1,
        samples=(),
        stop_reason=evaluation.StopReason.TASK,
        claimed_ns=times.mean,
    )


def _program(session: EvaluationSession, phase: _Phase, program: int | None) -> Program:
    """The phase's program; a compiled `program` gets only the cases, not its sources."""
    task, source = session.request.task, session.request.source
    files = {CASES_FILE: "".join(f"{case.spec}\n" for case in phase.cases)}
    arguments = (phase.step.value, CASES_FILE)
    script: tuple[str, ...] = ()
    if program is None:
        files = {**task.files, task.submission_file: source, **files}
        script = (task.config.main, *arguments)
        command = own_script("kernelbot/launch.py", *script)
    else:
        command = (f"./{executable.NAME}", *arguments)
    return Program(
        command=command,
        script=script,
        files=files,
        executables={} if program is None else {executable.NAME: program},
        environment=_environment(session, phase),
        limits=_limits(session.request.limits, task.world_size),
        gpu=session.on_gpu,
        ranks=task.multi_gpu,
        prelude=_prelude(task, source, phase.deadline),
    )


def _environment(session: EvaluationSession, phase: _Phase) -> dict[str, str]:
    task = session.request.task
    environment = dict(_NO_MULTICAST)
    if not session.on_gpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    if phase.seed is not None:
        environment["POPCORN_SEED"] = str(phase.seed)
    if task.multi_gpu:
        environment |= {**_LOOPBACK, "POPCORN_GPUS": str(_gpus(session))}
    return environment


def _gpus(session: EvaluationSession) -> int:
    """How many workers the evaluation may start: one per GPU, or without GPUs what it requests."""
    wanted = session.request.task.world_size
    visible = len(visible_gpus()) if session.on_gpu else wanted
    if visible < wanted:
        raise VerdictError(
            Verdict.TASK_ERROR, f"this task needs {wanted} GPUs, and this runner has {visible}"
        )
    return visible


def _limits(limits: evaluation.Limits, ranks: int) -> evaluation.Limits:
    """The limits for an evaluation and one worker per rank, each with torch and its threads."""
    processes = 1 + ranks
    cores = len(os.sched_getaffinity(0))
    return limits.model_copy(
        update={
            "memory": limits.memory * ranks,
            "disk": limits.disk if ranks == 1 else limits.disk * processes,
            "processes": (limits.processes + 4 * cores) * processes,
            "open_files": limits.open_files * 4 * processes,
        }
    )


def _prelude(task: TaskDefinition, source: str, deadline: Deadline) -> Prelude | None:
    """A run of the submission alone, if it compiles at import; the phase reuses what it built."""
    if task.is_program or not any(word in source for word in _BUILDS_INLINE):
        return None
    return Prelude(
        script=task.submission_file,
        files=candidate_files(task, source),
        environment={"POPCORN_SEED": "1"},
        seconds=min(PRELUDE_S, max(0.0, deadline.remaining / 2)),
    )

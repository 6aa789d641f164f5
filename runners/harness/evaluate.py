"""One evaluation, from the request to the result and the environment that it ran in."""

import functools
import importlib.metadata
import os
import platform
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch

from runners import languages
from runners.contract import evaluation
from runners.contract.comparison import Comparison
from runners.contract.task import Device, Grader, Mode, TaskDefinition
from runners.contract.verdict import Stage, Verdict
from runners.harness import HARNESS_VERSION, graders
from runners.harness.build.kit import KIT
from runners.harness.gpu.health import first_gpu
from runners.harness.judge.launches import launching_of
from runners.harness.judge.session import EvaluationSession, candidate_files, public_nonce
from runners.harness.protocol.builds import Builds
from runners.harness.relay import CheckWatch
from runners.harness.supervision.template import TemplateProcess, pack_files
from runners.harness.verdicts import (
    CHECK_OUT_OF_TIME,
    GradingResult,
    RivalBrokeContextError,
    VerdictError,
    without_own_frames,
)
from runners.plugins import load


def evaluate(
    request: evaluation.EvaluationRequest,
    template: TemplateProcess,
    isolation: evaluation.Isolation,
    report: Callable[[evaluation.Progress], None],
    *,
    watch: CheckWatch | None = None,
) -> evaluation.Evaluation:
    """Evaluate one submission; `isolation` has the sandbox layers around the harness itself.

    A VerdictError becomes the evaluation's verdict; StartError and MachineError pass through.
    """
    begin = time.monotonic()
    report(evaluation.Progress(stage=Stage.PREPARE))
    files_fd = pack_files(candidate_files(request.task, request.source))
    builds = Builds(request.limits.disk)
    session: EvaluationSession | None = None
    try:
        with workspace(request.task) as folder:
            on_gpu = choose_device(request)
            grader = _grader_of(request.task)
            session = EvaluationSession(
                request=request,
                task_code=grader.task_code(folder, request.task, on_gpu=on_gpu),
                on_gpu=on_gpu,
                template=template,
                files_fd=files_fd,
                builds=builds,
                launching=launching_of(request.task, request.source),
                nonce=nonce_of(request),
                report=report,
                isolation=isolation,
            )
            grade = grader.grade(_watched(session, begin, watch))
    except (VerdictError, RivalBrokeContextError) as error:
        grade = _failed(Stage.PREPARE, error)
    finally:
        os.close(files_fd)
        builds.close()
    return _evaluation_of(request, grade, session, isolation=isolation, begin=begin)


def _failed(
    stage: Stage, error: VerdictError | RivalBrokeContextError, *, rival: bool = False
) -> GradingResult:
    """Return the result for a failure of the submission or, if it is the rival's, of that alone."""
    grade = GradingResult()
    if isinstance(error, RivalBrokeContextError):
        error, rival = error.error, True
    if rival:
        grade.comparison = Comparison(rival_verdict=error.verdict, rival_detail=error.message)
    else:
        grade.fail(stage, error)
    return grade


def _watched(
    session: EvaluationSession, begin: float, watch: CheckWatch | None
) -> EvaluationSession:
    """Prepare what the server sends if the check of an answer does not end, or ends the judge.

    After failed attempts there is none: the time that they used may not be the submission's fault.
    """
    request, session.watch = session.request, watch
    if watch is None or request.used_s:
        return session

    def evaluations_at(stage: Stage, rival: bool) -> tuple[bytes, bytes]:  # noqa: FBT001
        late = VerdictError(Verdict.TIMED_OUT, CHECK_OUT_OF_TIME)
        crashed = VerdictError(Verdict.WRONG_ANSWER, "the task's check of the output crashed")
        return (
            evaluation_with(_failed(stage, late, rival=rival), watch.end - begin),
            evaluation_with(_failed(stage, crashed, rival=rival), time.monotonic() - begin),
        )

    def evaluation_with(grade: GradingResult, wall_s: float) -> bytes:
        found = _evaluation_of(request, grade, session, isolation=session.isolation, begin=begin)
        return found.model_copy(update={"wall_s": wall_s}).model_dump_json().encode()

    watch.evaluations_at = evaluations_at
    return session


@contextmanager
def workspace(task: TaskDefinition) -> Iterator[Path]:
    """Create a folder with the task's files, ready for import, and delete it at the end."""
    with tempfile.TemporaryDirectory(prefix="judge-") as name:
        folder = Path(name)
        for file_name, text in task.files.items():
            (folder / file_name).write_text(text)
        yield folder


def plugin(package: ModuleType, name: str) -> ModuleType:
    """Return a package's plugin with this name; VerdictError if this harness has none."""
    try:
        return load(package, name)
    except LookupError as error:
        raise _cannot_judge(str(error)) from error


def _grader_of(task: TaskDefinition) -> ModuleType:
    grader = plugin(graders, task.grader.value)
    require_toolchain(task)
    return grader


def _cannot_judge(reason: str) -> VerdictError:
    return VerdictError(Verdict.TASK_ERROR, f"this runner cannot judge the task: {reason}")


def require_toolchain(task: TaskDefinition) -> None:
    """Raise VerdictError if this runner cannot build the submission.

    A task's own program is compiled by the grader `popcorn`, which checks that itself.
    """
    if task.is_program and task.grader is Grader.POPCORN:
        return
    try:
        language = languages.language(task.lang)
    except LookupError as error:
        raise _cannot_judge(str(error)) from error
    if task.grader is not Grader.NATIVE:
        return
    if "launch" in language.SPEC.requires_one_of and task.launch is None:
        message = f"grader 'native' needs a 'launch' to judge '{task.lang}', and the task has none"
        raise VerdictError(Verdict.TASK_ERROR, message)
    if language.toolchain(KIT) is None:
        raise _cannot_judge(f"no toolchain here builds '{task.lang}'")


def choose_device(request: evaluation.EvaluationRequest) -> bool:
    """Return whether inputs are on the GPU; hide the GPU from an evaluation on the CPU.

    VerdictError if the task needs a GPU and the runner has none.
    """
    device = request.task.device
    if request.gpu == evaluation.CPU or device is Device.CPU:
        os.putenv("CUDA_VISIBLE_DEVICES", "")
        if device is Device.CUDA:
            raise VerdictError(
                Verdict.TASK_ERROR, "this task needs a GPU, and this runner has none"
            )
        return False
    return True


def nonce_of(request: evaluation.EvaluationRequest) -> bytes:
    """Return the key of the seeds: secret in a ranked run, public otherwise."""
    if request.mode is not Mode.RANKED:
        return public_nonce(request.task)
    return bytes.fromhex(request.nonce) if request.nonce else secrets.token_bytes(32)


def _evaluation_of(
    request: evaluation.EvaluationRequest,
    grade: GradingResult,
    session: EvaluationSession | None,
    *,
    isolation: evaluation.Isolation,
    begin: float,
) -> evaluation.Evaluation:
    """Return the evaluation; `session` is None if the evaluation ended before it was created."""
    return evaluation.Evaluation(
        request_id=request.request_id,
        verdict=grade.verdict,
        stage=grade.stage,
        message=grade.message,
        compiled=session.compiled if session else None,
        mode=request.mode,
        task=request.task.name,
        gpu=request.gpu,
        cases=tuple(grade.cases),
        log=without_own_frames(session.log.decode(errors="replace")) if session else "",
        files=tuple(session.files) if session else (),
        environment=environment_of(request, session),
        isolation=session.isolation if session else isolation,
        wall_s=time.monotonic() - begin,
        durations_s=session.durations_s if session else {},
        comparison=grade.comparison,
        gpus=1 if request.gpu == evaluation.CPU else request.task.world_size,
    )


def environment_of(
    request: evaluation.EvaluationRequest, session: EvaluationSession | None
) -> evaluation.Environment:
    """The machine's environment during this evaluation."""
    if session is None:
        return host_environment()
    environment = (
        gpu_environment(request.gpu, session.transport) if session.on_gpu else host_environment()
    )
    return environment.model_copy(
        update={
            "timing": session.timing,
            "transport": session.transport,
            "slowed": dict(session.slowed),
            "clocks": session.clocks or environment.clocks,
        }
    )


@functools.cache
def cpu_model() -> str:
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@functools.cache
def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def importable() -> tuple[str, ...]:
    """Return the names of importable packages; a task's `libraries` must be among them."""
    found = importlib.metadata.packages_distributions()
    return tuple(sorted(name for name in found if name.isidentifier() and name[0] != "_"))


def host_environment() -> evaluation.Environment:
    """Return the environment of a CPU evaluation; the first call takes longest."""
    return evaluation.Environment(
        gpu=evaluation.CPU,
        torch=torch.__version__,
        triton=_version_of("triton"),
        cuda=torch.version.cuda,
        python=platform.python_version(),
        cpu=cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        platform=platform.platform(),
        harness_version=HARNESS_VERSION,
        transport="shared-memory",
    )


def gpu_environment(gpu: str, transport: str) -> evaluation.Environment:
    """The environment of a GPU evaluation, with current readings of the first visible GPU."""
    host = host_environment()
    first = first_gpu()
    readings = first.read()
    return host.model_copy(
        update={
            "gpu": gpu,
            "gpu_uuid": first.handle,
            "driver": readings.driver if readings else None,
            "transport": transport,
            "clocks": readings.clocks if readings else {},
        }
    )

"""A runner without a harness, for tests: a directive in the submission's source defines the result.

For example `# fake: verdict=wrong_answer time_us=30 seconds=0.2` on a line of its own.
`half_width_us=20` makes the times noisy, and `file=NAME` adds a file with the source.
`# fake: error=boom` and `# fake: lost` make the runner itself fail.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

from runners.calls import Calls
from runners.contract.comparison import Comparison, Ratio
from runners.contract.evaluation import (
    CPU,
    CaseKind,
    CaseResult,
    CaseStatus,
    Environment,
    Evaluation,
    EvaluationRequest,
    Isolation,
    Measurement,
    Progress,
    StopReason,
)
from runners.contract.files import EvaluationFile
from runners.contract.runner import CallId, Capabilities, ProgressSink, RunnerError, RunnerLostError
from runners.contract.task import Grader, Mode, TaskFormat
from runners.contract.verdict import Stage, Verdict
from runners.languages import names_of, specs

_VERSION = "fake-1"
_DIRECTIVE = re.compile(r"^\s*(?:#|//)\s*fake:(?P<words>.*)$", re.MULTILINE)
_REMEMBERED = 10_000
"""How many ended calls can still be awaited; a test may start many before it awaits one."""

_ENVIRONMENT = Environment(
    gpu=CPU, python="-", cpu="-", cores=1, platform="-", harness_version=_VERSION, transport="-"
)

_STAGES = {
    Verdict.BUILD_FAILED: Stage.BUILD,
    Verdict.INVALID_SUBMISSION: Stage.BUILD,
    Verdict.TIMING_REJECTED: Stage.TIMING,
    Verdict.AUDIT: Stage.TIMING,
    Verdict.TASK_ERROR: Stage.PREPARE,
}


@dataclass(frozen=True, slots=True)
class _Script:
    """The behavior that one submission requests."""

    verdict: Verdict = Verdict.PASSED
    stage: Stage = Stage.TEST
    time_ns: float = 1_000.0
    half_width_ns: float = 1.0
    seconds: float = 0.0
    message: str = ""
    file: str | None = None
    error: str | None = None
    lost: bool = False


def _script(source: str) -> _Script:
    directive = _DIRECTIVE.search(source)
    words = directive["words"].split() if directive else []
    values = dict(word.partition("=")[::2] for word in words)
    try:
        verdict = Verdict(values.get("verdict", Verdict.PASSED))
        time_us = float(values.get("time_us", "1"))
        return _Script(
            verdict=verdict,
            stage=Stage(values.get("stage", _STAGES.get(verdict, Stage.TEST))),
            time_ns=1_000 * time_us,
            half_width_ns=1_000 * float(values.get("half_width_us", time_us / 1_000)),
            seconds=float(values.get("seconds", "0")),
            message=values.get("message", "").replace("_", " "),
            file=values.get("file"),
            error=values.get("error"),
            lost="lost" in values,
        )
    except ValueError as error:
        raise RunnerError(f"the fake runner cannot read its directive: {error}") from error


class FakeRunner:
    """Simulates evaluations, with the slots and GPU types of `capabilities`."""

    def __init__(self, name: str, capabilities: Capabilities) -> None:
        self.name = name
        self._capabilities = capabilities
        self._free = {gpu: asyncio.Semaphore(count) for gpu, count in capabilities.gpus.items()}
        self._calls = Calls(name, remembered=_REMEMBERED)

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    async def start(self, request: EvaluationRequest) -> CallId:
        if request.gpu not in self._free:
            raise RunnerError(f"runner {self.name} has no GPU type {request.gpu}")
        return self._calls.start(lambda call, progress: self._evaluate(call, request, progress))

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        return await self._calls.wait(call, progress)

    async def cancel(self, call: CallId) -> None:
        await self._calls.cancel(call)

    async def aclose(self) -> None:
        await self._calls.aclose()

    @property
    def started(self) -> int:
        """How many evaluations were started."""
        return self._calls.started

    async def _evaluate(
        self, call: CallId, request: EvaluationRequest, progress: ProgressSink
    ) -> Evaluation:
        async with self._free[request.gpu]:
            script = _script(request.source)
            limit = request.task.timeout_s(request.mode)
            steps = _steps(request)
            for step in steps:
                progress(step)
                await asyncio.sleep(min(script.seconds, limit) / len(steps))
            if script.lost:
                self._calls.remove(call)
                raise RunnerLostError(f"the machine of call {call} was lost")
            if script.error is not None:
                raise RunnerError(script.error)
            if script.seconds > limit:
                script = _Script(Verdict.TIMED_OUT, Stage.TEST, message=f"over {limit} s")
            return _evaluation(request, script)


def _phases(mode: Mode) -> tuple[bool, bool]:
    """Whether a mode runs the tests, and whether it times the benchmarks."""
    return mode in {Mode.TEST, Mode.RANKED}, mode is not Mode.TEST


def _steps(request: EvaluationRequest) -> list[Progress]:
    tests, timing = _phases(request.mode)
    steps = [Progress(stage=Stage.BUILD)]
    if tests:
        steps.append(Progress(stage=Stage.TEST, done=0, total=len(request.task.tests)))
    if timing:
        steps.append(Progress(stage=Stage.TIMING, done=0, total=len(request.task.benchmarks)))
    return steps


def _evaluation(request: EvaluationRequest, script: _Script) -> Evaluation:
    passed = script.verdict is Verdict.PASSED
    return Evaluation(
        request_id=request.request_id,
        verdict=script.verdict,
        stage=None if passed else script.stage,
        message=script.message,
        mode=request.mode,
        task=request.task.name,
        gpu=request.gpu,
        cases=_cases(request, script),
        files=(EvaluationFile.of(script.file, request.source.encode()),) if script.file else (),
        environment=_ENVIRONMENT.model_copy(update={"gpu": request.gpu}),
        isolation=Isolation(outer="none"),
        wall_s=script.seconds,
        comparison=None if request.rival is None else _comparison(request, script, request.rival),
    )


def _comparison(request: EvaluationRequest, script: _Script, rival: str) -> Comparison:
    """Return the ratio of the times that the two sources name."""
    other = _script(rival)
    passed = script.verdict is other.verdict is Verdict.PASSED
    found = Ratio(ratio=script.time_ns / other.time_ns, half_width=0.001, rounds=5)
    count = len(request.task.timed(request.mode)) if passed else 0
    return Comparison(
        benchmarks=(found,) * count, rival_verdict=other.verdict, rival_detail=other.message
    )


def _cases(request: EvaluationRequest, script: _Script) -> tuple[CaseResult, ...]:
    tests, _ = _phases(request.mode)
    workloads = [(CaseKind.TEST, each) for each in request.task.tests if tests]
    workloads += [(CaseKind.BENCHMARK, each) for each in request.task.timed(request.mode)]
    if request.mode is Mode.PROFILE:
        workloads += [(CaseKind.PROFILE, each) for each in request.task.benchmarks]
    passed = script.verdict is Verdict.PASSED
    ended = not passed and script.stage in {Stage.PREPARE, Stage.BUILD}
    fails_timing = script.stage is Stage.TIMING
    cases: list[CaseResult] = []
    for kind, workload in workloads:
        fails = not passed and (not tests or (kind is not CaseKind.TEST) == fails_timing)
        status = CaseStatus.FAILED if fails else CaseStatus.PASSED
        status = CaseStatus.SKIPPED if ended else status
        timed = status is CaseStatus.PASSED and kind is CaseKind.BENCHMARK
        case = CaseResult(
            spec=workload.spec,
            kind=kind,
            status=status,
            message=script.message if status is CaseStatus.FAILED else "",
            measurement=_measurement(script, request) if timed else None,
        )
        cases.append(case)
        ended |= fails
    return tuple(cases)


def _measurement(script: _Script, request: EvaluationRequest) -> Measurement:
    policy, time_ns = request.round_policy, script.time_ns
    rounds = policy.looks[0]
    return Measurement(
        time_ns=time_ns,
        half_width_ns=script.half_width_ns,
        bound_ns=time_ns,
        resolution_ns=time_ns / 100,
        rounds=rounds,
        samples=((time_ns,) * policy.samples,) * rounds,
        stop_reason=StopReason.PRECISE,
    )


def create(
    *,
    slots: Mapping[str, int] | None = None,
    name: str = "fake",
    capabilities: Capabilities | None = None,
) -> FakeRunner:
    """A fake runner with these slots per GPU type, by default one on the CPU.

    `capabilities` replaces everything that it would otherwise report, including the slots.
    """
    gpus = dict(slots) if slots is not None else {CPU: 1}
    offered = capabilities or Capabilities(
        harness_version=_VERSION,
        gpus=gpus,
        languages=names_of(specs()),
        graders=tuple(Grader),
        formats=tuple(TaskFormat),
        at_once=dict.fromkeys(gpus, 8),
    )
    return FakeRunner(name, offered)

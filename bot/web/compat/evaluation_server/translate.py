"""Translates a request into a task, a source and rounds for a runner.

The sources stay unchanged, and no code is generated: the calls are described in a file for the
harness. `client` is the contract in the client's format, `judge` in the harness's.

The request is also stored, as a file of the task version that is created from it. Of the kernels,
that file has only the types: the judged source is the submission, and everything else is in the
harness's contract. So a poll reads little, and literal data is stored once.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import TypeAdapter

from bot.domain.tasks.task_file import ROUNDS
from bot.web.compat.evaluation_server import io_contract as client
from bot.web.compat.evaluation_server import requests
from runners.contract import io_contract as judge
from runners.contract.evaluation import CPU, EvaluationRequest, Limits, RoundPolicy
from runners.contract.task import (
    PYTHON,
    Device,
    Mode,
    RankingBy,
    TaskDefinition,
    TaskFormat,
    Workload,
)

TASK = "evaluation-server"
TESTS = 3
"""Checked calls before any timing, each with other inputs; the first uses the request's seeds."""
ROUNDS_USUAL, ROUNDS_MOST = 5, 8
SAMPLES_LEAST = 3
"""The least number of samples in a round, even if fewer are requested."""
BUILD_SHARE = 0.6
"""The fraction of the time for compiling and checking; the rest is for the rounds."""
_SPARE_S = 1
"""Seconds reserved for the time before and after the judge's own limits."""


class TranslatedRequest(NamedTuple):
    """A request to a runner, without its id and GPU type."""

    task: TaskDefinition
    source: str
    rounds: RoundPolicy
    mode: Mode = Mode.RANKED

    def request(
        self, request_id: str, gpu: str = CPU, limits: Limits | None = None
    ) -> EvaluationRequest:
        """Return the evaluation request for this GPU type."""
        return EvaluationRequest(
            request_id=request_id,
            task=self.task,
            source=self.source,
            mode=self.mode,
            gpu=gpu,
            rounds=self.rounds,
            limits=limits or Limits(),
        )


def order_of(request: requests.Request, *, seconds: int | None = None) -> TranslatedRequest:
    """Translate a request.

    `seconds` is the judge's time, by default the request's timeout. An invalid kernel raises no
    error here; the judge reports it.
    """
    task = task_of(request, seconds)
    source = requests.kernels_of(request)[-1].source_code
    return TranslatedRequest(task, source, rounds_of(request.num_trials))


def task_of(request: requests.Request, seconds: int | None = None) -> TaskDefinition:
    """Return the task for a request; its submission is the judged kernel's source."""
    contract = contract_of(request)
    compared = contract.reference is not None
    sides = (judge.Side.REFERENCE, judge.Side.CUSTOM) if compared else (judge.Side.CUSTOM,)
    whole = max(2, (request.timeout if seconds is None else seconds) - _SPARE_S)
    checking = round(whole * BUILD_SHARE)
    return TaskDefinition(
        name=TASK,
        lang=PYTHON,
        format=TaskFormat.IO_CONTRACT,
        description="A kernel of the evaluation server's.",
        files={
            judge.CONTRACT: contract.model_dump_json(exclude_none=True),
            judge.CALL: contract.custom.bare().model_dump_json(exclude_none=True),
        },
        submission_file=_file_name(contract.custom.kind),
        shared_files=(judge.CALL,),
        tests=tuple(
            _case(judge.Side.CUSTOM, seed)
            for seed in range(judge.GIVEN_SEED, judge.GIVEN_SEED + TESTS)
        ),
        benchmarks=tuple(Workload(args={judge.KERNEL: side.value}) for side in sides),
        test_timeout=checking,
        benchmark_timeout=whole,
        ranked_timeout=whole - checking,
        ranking_by=RankingBy.MEAN,
        device=_device(contract),
        mutates_inputs=not compared or _writes_unseen(contract.custom),
    )


def rounds_of(trials: int) -> RoundPolicy:
    """Rounds with at least `trials` timed samples in all, and as few more as possible."""
    most = max(1, min(ROUNDS_MOST, trials // SAMPLES_LEAST))
    least = ROUNDS_USUAL if most >= ROUNDS_USUAL else 1

    def excess(rounds: int) -> tuple[int, int]:
        return -(-trials // rounds) * rounds, abs(rounds - ROUNDS_USUAL)

    rounds = min(range(least, most + 1), key=excess)
    return RoundPolicy(looks=(rounds,), samples=max(SAMPLES_LEAST, -(-trials // rounds)))


def contract_of(request: requests.Request) -> judge.Contract:
    """Both kernels and their calls; a kernel without arguments gets the other's."""
    match request:
        case requests.EvaluateRequest(kernel=kernel):
            return judge.Contract(custom=_call(kernel, kernel.io), counted=request.device_metrics)
        case requests.CompareRequest(ref_kernel=ref, custom_kernel=custom):
            return judge.Contract(
                custom=_call(custom, custom.io or ref.io),
                reference=judge.ReferenceKernel(
                    call=_call(ref, ref.io or custom.io),
                    source=ref.source_code,
                    file_name=_file_name(judge.KernelKind(ref.kernel_type)),
                    atol=requests.TOLERANCE if request.atol is None else request.atol,
                    rtol=requests.TOLERANCE if request.rtol is None else request.rtol,
                ),
                drawn_by=judge.Side.REFERENCE,
                counted=request.device_metrics,
            )


def _case(side: judge.Side, seed: int) -> Workload:
    return Workload(args={judge.KERNEL: side.value, "seed": seed})


def _device(contract: judge.Contract) -> Device:
    kinds = {contract.call_of(side).kind for side in judge.Side}
    return Device.CUDA if kinds & judge.DEVICE_KINDS else Device.ANY


def _writes_unseen(call: judge.KernelCall) -> bool:
    """Return whether the call may write to an argument and return something, as Python may."""
    if call.kind in judge.DEVICE_KINDS:
        return False
    args = call.args or ()
    return any(
        isinstance(arg, judge.TensorArgument) and arg.role is not judge.Role.INPUT for arg in args
    )


def _file_name(kind: judge.KernelKind) -> str:
    return "kernel.cu" if kind is judge.KernelKind.CUDA else "kernel.py"


def _call(kernel: requests.KernelCode, io: client.IOContract | None) -> judge.KernelCall:
    launch = (io and io.launch) or client.LaunchConfig()
    return judge.KernelCall(
        kind=judge.KernelKind(kernel.kernel_type),
        args=None if io is None else tuple(_argument(arg) for arg in io.args),
        grid=_extents(launch.grid or client.Dim()),
        block=_extents(launch.block or client.Dim(x=256)),
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
        function_name=kernel.named("function_name"),
        class_name=kernel.named("class_name"),
        method_name=kernel.named("method_name"),
        kernel_name=kernel.named("kernel_name"),
        entry_point=kernel.named("entry_point"),
        options=_words(kernel, "compiler_options"),
        expressions=_words(kernel, "name_expressions"),
    )


def _words(kernel: requests.KernelCode, key: str) -> tuple[str, ...]:
    metadata: Mapping[str, object] = kernel.metadata or {}
    found = metadata.get(key)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _extents(dim: client.Dim) -> judge.Extents:
    return dim.x, dim.y, dim.z


def _argument(arg: client.ArgSpec) -> judge.Argument:
    if arg.tensor_spec is not None and arg.type == "tensor":
        return _tensor(arg, arg.tensor_spec)
    value = float(arg.value or 0) if arg.type == "float" else arg.value
    return judge.ContractScalar(
        name=arg.name, value=0 if value is None else value, meta=arg.is_meta
    )


def _tensor(arg: client.ArgSpec, spec: client.TensorSpec) -> judge.TensorArgument:
    """Return a tensor argument; literal values with dtype and shape override a distribution."""
    role = judge.Role(arg.role)
    data = spec.data
    if data is not None:
        literals = judge.Literals(data=data.data_b64, zipped=data.compress == "zlib")
        return judge.TensorArgument(
            name=arg.name, role=role, dtype=data.dtype, shape=data.shape, literals=literals
        )
    init = spec.init or (None if role is judge.Role.OUTPUT else client.TensorInit())
    fill = None if init is None else _fill(init)
    return judge.TensorArgument(
        name=arg.name, role=role, dtype=spec.dtype, shape=spec.shape, fill=fill
    )


def _fill(init: client.TensorInit) -> judge.Fill:
    return judge.Fill(value=init.fill_value, **init.model_dump(exclude={"fill_value"}))


RECORD = "request.json"

_REQUEST: TypeAdapter[requests.Request] = TypeAdapter(requests.Request)


def with_record(task: TaskDefinition, request: requests.Request) -> TaskDefinition:
    """Return the task with files for the request and its rounds, which no candidate can see."""
    kept = _without_kernels(request).model_dump_json(exclude_none=True)
    rounds = rounds_of(request.num_trials).model_dump_json()
    return task.model_copy(update={"files": {**task.files, RECORD: kept, ROUNDS: rounds}})


def recorded(task: TaskDefinition) -> requests.Request:
    """Return the request from which a task was created, without its kernels."""
    return _REQUEST.validate_json(task.files[RECORD])


def _without_kernels(request: requests.Request) -> requests.Request:
    match request:
        case requests.EvaluateRequest(kernel=kernel):
            return request.model_copy(update={"kernel": _bare(kernel)})
        case requests.CompareRequest(ref_kernel=ref, custom_kernel=custom):
            bare = {"ref_kernel": _bare(ref), "custom_kernel": _bare(custom)}
            return request.model_copy(update=bare)


def _bare(kernel: requests.KernelCode) -> requests.KernelCode:
    return requests.KernelCode(source_code="", kernel_type=kernel.kernel_type)

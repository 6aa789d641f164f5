"""The evaluation request, with the profiler's options, and the evaluation that answers it."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from runners.contract.comparison import LIMITS_OF_COMPARISON, Comparison, Ratio
from runners.contract.files import EvaluationFile, fit
from runners.contract.launch import Compiled
from runners.contract.task import IsolationLayer, Mode, TaskDefinition
from runners.contract.verdict import Stage, Verdict
from runners.contract.wire import CONTRACT_VERSION, ContractVersion, Wire

CPU = "CPU"
"""The GPU type of a machine without a GPU."""
RANKS_ON_CPU = 8
"""The most ranks of a multi-GPU task on the CPU, where each rank is only a process."""
GRACE_S = 30.0
"""Seconds beyond the task's limits after which a runner kills a harness; its own limit is lower."""

PositiveNs = Annotated[float, Field(gt=0)]


class Limits(Wire):
    """Resource limits of one candidate, in bytes unless the name says otherwise."""

    memory: int = Field(default=4 << 30, ge=64 << 20)
    """Memory in addition to what a candidate uses at its start."""
    output: int = Field(default=64 << 10, ge=1 << 10)
    """Output to stdout and stderr together; more is `output_exceeded`."""
    disk: int = Field(default=256 << 20, ge=1 << 20)
    """Size of all scratch folders together; building inline CUDA needs about 50 MiB."""
    processes: int = Field(default=64, ge=4)
    open_files: int = Field(default=256, ge=32)


class RoundPolicy(Wire):
    """How many rounds are timed, and when the timing stops early."""

    looks: tuple[int, ...] = (5, 8, 12, 15)
    """The round counts at which the interval is checked; the last one is the maximum."""
    samples: int = Field(default=30, ge=3)
    """Timed calls per round."""
    half_width: float = Field(default=0.005, gt=0)
    """The half-width that is narrow enough, relative to the time; for a claim 250 ns always is."""

    @model_validator(mode="after")
    def _looks_ascend(self) -> Self:
        if not self.looks or list(self.looks) != sorted(set(self.looks)) or self.looks[0] < 1:
            raise ValueError("looks must be ascending positive round counts")
        return self


RANKED_ROUNDS = RoundPolicy()
HOST_ROUNDS = RoundPolicy(looks=(5, 8, 12, 20, 30))  # on the CPU
COMPARED_ROUNDS = RoundPolicy(looks=(5, 8, 15, 30, 60))  # pairs, of a submission and its rival
BENCHMARK_ROUNDS = RoundPolicy(looks=(3,), samples=15)


class KernelNameBase(StrEnum):
    """The form of a kernel's name that a filter is compared with."""

    FUNCTION = "function"
    DEMANGLED = "demangled"
    MANGLED = "mangled"


class ProfileOptions(Wire):
    """What to profile: which benchmark, which kernels of a call. None does not restrict it."""

    benchmark: Annotated[int, Field(ge=0)] | None = None
    """The index of the only benchmark to profile, from 0."""
    kernel_name: (
        Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=1024)] | None
    ) = None
    """A kernel filter of Nsight Compute: a name, or `regex:` followed by an expression."""
    kernel_name_base: KernelNameBase | None = None
    launch_count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many kernels of each call are profiled."""

    def select_benchmark(self, task: TaskDefinition) -> TaskDefinition:
        """The task with only the requested benchmark; IndexError if it does not exist."""
        if self.benchmark is None:
            return task
        return task.model_copy(update={"benchmarks": (task.benchmarks[self.benchmark],)})


class EvaluationRequest(Wire):
    """Everything that a runner needs to evaluate one submission."""

    contract_version: ContractVersion = CONTRACT_VERSION
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    task: TaskDefinition
    source: str
    mode: Mode
    gpu: str = CPU
    nonce: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32,128}$")] | None = None
    """The key from which a ranked run derives its seeds; with None the judge generates one."""
    rounds: RoundPolicy | None = None
    """With None the policy of the mode."""
    limits: Limits = Limits()
    profile: ProfileOptions = ProfileOptions()
    """Only for mode `profile`. `task` must already have only the chosen benchmark."""
    used_s: Annotated[float, Field(ge=0, exclude_if=lambda used_s: not used_s)] = 0.0
    """Seconds that failed attempts used; sent only if not 0, because older workers refuse it."""
    rival: Annotated[str | None, Field(exclude_if=lambda rival: rival is None)] = None
    """The source that this one is compared with; only if `ranked`. An older worker refuses it."""

    @model_validator(mode="after")
    def _only_ranked_runs_are_compared(self) -> Self:
        if self.rival is not None and self.mode is not Mode.RANKED:
            raise ValueError("only a ranked run has a rival")
        return self

    @property
    def round_policy(self) -> RoundPolicy:
        """The requested policy, otherwise that of the mode, the device and a comparison."""
        on_gpu = RANKED_ROUNDS if self.rival is None else COMPARED_ROUNDS
        ranked = HOST_ROUNDS if self.gpu == CPU else on_gpu
        return self.rounds or (ranked if self.mode is Mode.RANKED else BENCHMARK_ROUNDS)

    @property
    def left_s(self) -> float:
        """Seconds that the evaluation may take: the task's limits less what was used before."""
        times = 1 if self.rival is None else LIMITS_OF_COMPARISON
        return times * self.task.limit_s(self.mode) - self.used_s

    @property
    def hard_limit_s(self) -> float:
        """Seconds after which a runner kills a harness, because its own limits did not work."""
        return self.left_s + GRACE_S


class CaseKind(StrEnum):
    """Which list of the task a case comes from."""

    TEST = "test"
    """One checked call."""
    BENCHMARK = "benchmark"
    """Timed rounds, every output checked."""
    PROFILE = "profile"
    """One checked call under the profiler, whose table is in the log."""


class CaseStatus(StrEnum):
    """How one case ended."""

    PASSED = "passed"
    """The output was right and the time, if any, was confirmed."""
    FAILED = "failed"
    """This case caused the verdict."""
    SKIPPED = "skipped"
    """An earlier case had ended the evaluation."""


class Timing(StrEnum):
    """Whose clock the times of an evaluation come from."""

    OUTSIDE = "outside"
    """The judge's clock, or one that the judge confirmed; the submission could not change it."""
    IN_PROCESS = "in-process"
    """The clock of the task's own evaluation, in the submission's process; not confirmed."""


class StopReason(StrEnum):
    """Why timing stopped."""

    PRECISE = "precise"
    """The interval was narrow enough at a check."""
    ROUND_CAP = "round_cap"
    """The maximum number of rounds was reached."""
    TIME_CAP = "time_cap"
    """The task's time limit was close."""
    TASK = "task"
    """The task's own evaluation decided."""
    BUDGET = "budget"
    """On the CPU: all minimum rounds are timed, and the benchmark's share of seconds is used up."""
    SLOW = "slow"
    """Its calls took more than `comparison.SLOWER_MOST` times as long as the reference."""


class Measurement(Wire):
    """The confirmed time of one benchmark; all times in nanoseconds."""

    time_ns: PositiveNs
    """The mean of claims on a GPU or of the judge's bounds, or what the task's code reported."""
    half_width_ns: Annotated[float, Field(ge=0)]
    """Half-width of the 95 % t interval of `time_ns`."""
    bound_ns: float
    """The judge's window around a call minus its window around a no-op."""
    resolution_ns: Annotated[float, Field(ge=0)]
    """The most by which a claim can be too low without detection."""
    rounds: Annotated[int, Field(ge=1)]
    samples: tuple[tuple[float, ...], ...]
    """Every sample, per round; empty with in-process timing, which reports only a mean."""
    discarded: int = 0
    """Samples repeated for activity while frozen, disturbed calibration, lateness or a slow GPU."""
    stop_reason: StopReason
    left_out: Annotated[int, Field(ge=0, exclude_if=lambda left_out: not left_out)] = 0
    """On the CPU: calls that waited for other processes; they are checked, but are not samples."""
    vs_reference: Annotated[Ratio | None, Field(exclude_if=lambda ratio: ratio is None)] = None
    """On the CPU: the time / that of the reference, if there is one; its half-width is noise."""
    reference_missed: Annotated[bool, Field(exclude_if=lambda missed: not missed)] = False
    """On the CPU: whether that ratio is unknown because too few rounds timed the reference (too
    little time was left for it, or the machine was busy) or it takes no measurable time."""
    claimed_ns: float | None = None
    """The candidate's own time, which became `time_ns` unless it is `lifted`; None without one."""
    slowdown: Annotated[float | None, Field(gt=0, exclude_if=lambda factor: factor is None)] = None
    """By what a board has divided the times: the reference's time in this run / its usual time."""

    @property
    def lifted(self) -> bool:
        """Whether the judge's clock did not confirm the claimed time, and a longer one counts."""
        return self.claimed_ns is not None and self.claimed_ns < self.time_ns

    @property
    def cut_short(self) -> bool:
        """Whether the time limit stopped timing before the minimum rounds of a ranked run."""
        return self.stop_reason is StopReason.TIME_CAP and self.rounds < RANKED_ROUNDS.looks[0]


class CaseResult(Wire):
    """The result of one case: a failed one has a message, a passed benchmark a measurement."""

    spec: str
    kind: CaseKind
    status: CaseStatus
    message: str = ""
    measurement: Measurement | None = None

    @model_validator(mode="after")
    def _status_decides(self) -> Self:
        timed = self.kind is CaseKind.BENCHMARK and self.status is CaseStatus.PASSED
        if timed != (self.measurement is not None):
            raise ValueError("a passed benchmark, and no other case, has a measurement")
        return self


class Environment(Wire):
    """The machine and its software, recorded with every evaluation."""

    gpu: str
    gpu_uuid: str | None = None
    driver: str | None = None
    cuda: str | None = None
    torch: str | None = None
    triton: str | None = None
    python: str
    cpu: str
    cores: int
    platform: str
    harness_version: str
    transport: str
    """How inputs and outputs moved: `shared-memory`, `vmm` or `pinned-host`; `none` in-process."""
    timing: Timing = Timing.OUTSIDE
    clocks: dict[str, float] = Field(default_factory=dict)
    """After the last round: clocks in MHz, C, W, the limit in W, whether it slowed them (0, 1)."""
    slowed: dict[str, int] = Field(default_factory=dict)
    """Reason that slowed the GPU -> number of samples that were repeated because of it."""


_STRICT = {*IsolationLayer, "harness filesystem", "harness namespaces", "harness network"}
"""Every layer of a candidate, and the layers around the harness that no other can replace."""


class Isolation(Wire):
    """Which sandbox layers every candidate had, and why others were missing."""

    outer: str
    """What wrapped the harness: `bubblewrap`, `unshare`, or `none`."""
    layers: tuple[str, ...] = ()
    """A candidate's layers, and those around the harness that a candidate does not create."""
    missing: dict[str, str] = Field(default_factory=dict)
    """Layer -> why it is missing; `harness X` is layer X around the harness."""

    @property
    def missing_strict(self) -> tuple[str, ...]:
        """The missing layers that a strict sandbox must have."""
        return tuple(name for name in self.missing if name in _STRICT)

    def with_layers(self, layers: tuple[str, ...], missing: dict[str, str]) -> Self:
        """The isolation with the layers of one more process; a layer missing in any is missing."""
        missing = {**self.missing, **missing}
        active = tuple(each for each in dict.fromkeys(self.layers + layers) if each not in missing)
        return self.model_copy(update={"layers": active, "missing": missing})


class Evaluation(Wire):
    """The one answer to one request."""

    contract_version: ContractVersion = CONTRACT_VERSION
    request_id: str
    verdict: Verdict
    stage: Stage | None = None
    """The stage that caused the verdict; None if everything passed."""
    message: str = ""
    compiled: Compiled | None = None
    """What the compiler reported about device code."""
    mode: Mode
    task: str
    gpu: str
    cases: tuple[CaseResult, ...] = ()
    log: str = ""
    """The output of the candidate and its build, truncated."""
    files: tuple[EvaluationFile, ...] = ()
    """Reports of the profiler."""
    environment: Environment
    isolation: Isolation
    wall_s: Annotated[float, Field(ge=0)]
    durations_s: dict[str, float] = Field(default_factory=dict)
    gpus: Annotated[int, Field(ge=1, le=1024)] = 1
    """How many GPUs it used; 1 on the CPU."""
    used_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds for which it occupied its GPUs, with the container's start; None: `wall_s`."""
    comparison: Annotated[Comparison | None, Field(exclude_if=lambda found: found is None)] = None
    """What the comparison with the request's rival showed; None if none was made."""

    @property
    def gpu_s(self) -> float:
        """GPU seconds: the seconds for which it occupied its GPUs, times their number."""
        return self.gpus * (self.wall_s if self.used_s is None else self.used_s)

    @model_validator(mode="after")
    def _verdict_decides(self) -> Self:
        failed = any(case.status is not CaseStatus.PASSED for case in self.cases)
        if self.verdict is Verdict.PASSED and (failed or self.stage is not None):
            raise ValueError("a passed evaluation has only passed cases and no failing stage")
        if self.verdict is not Verdict.PASSED and self.stage is None:
            raise ValueError("a failing verdict names its stage")
        if self.verdict is not Verdict.PASSED and self.comparison and self.comparison.benchmarks:
            raise ValueError("a submission that failed has no ratios")
        return self

    @model_validator(mode="after")
    def _files_fit(self) -> Self:
        if not fit(self.files):
            raise ValueError("the files are too many or too large")
        if len({each.name for each in self.files}) < len(self.files):
            raise ValueError("two files have the same name")
        return self


class Progress(Wire):
    """The progress of a running evaluation."""

    stage: Stage
    done: int = 0
    total: int = 0
    note: str = ""

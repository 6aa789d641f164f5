"""The wire type of a task: its cases, files and grading rules."""

import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from runners.contract.wire import Wire

Scalar = bool | int | float | str
ArgValue = Scalar | tuple[Scalar, ...]
"""One argument of `generate_input` as task.yml may write it."""

FILE_NAME_FORM = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}$"
TASK_NAME_FORM = r"^[a-z0-9][a-z0-9_-]{0,63}$"
FileName = Annotated[str, StringConstraints(pattern=FILE_NAME_FORM)]
"""A flat file name: no folder, no hidden file, at most 100 characters."""
ArgName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
LanguageName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_+-]{0,15}$")]
"""The name of a language of submissions; `runners.languages` has all of them."""
PYTHON: LanguageName = "py"
"""The language of tasks that Podium itself creates, such as KernelBench problems."""
Seconds = Annotated[int, Field(ge=1, le=3600)]
COMPILE_S = 120
"""Seconds for compiling a program's sources, in addition to the limits of its phases."""
PROFILE_S = 120
"""Seconds for the kernel profiler in a whole evaluation, in addition to those limits."""


class Mode(StrEnum):
    """What a submission requests."""

    TEST = "test"
    """Run and check every test once."""
    BENCHMARK = "benchmark"
    """Time the benchmarks with public seeds and few rounds."""
    PROFILE = "profile"
    """Run the benchmarks under a profiler and return its tables."""
    RANKED = "ranked"
    """Run the tests, then time the benchmarks with a fresh nonce; the only mode with a score."""


class TaskFormat(StrEnum):
    """What the reference and the submission define."""

    KERNEL = "kernel"
    """`generate_input` and `check_implementation`; the submission has `custom_kernel`."""
    KERNELBENCH = "kernelbench"
    """`Model`, `get_inputs` and `get_init_inputs`; the submission has `ModelNew`."""
    IO_CONTRACT = "io_contract"
    """A declarative contract defines the kernel's arguments; no task.yml uses this format."""


REFERENCE_MODEL = "from reference import Model as ModelNew\n"
"""The submission that consists of a KernelBench problem's reference."""
REFERENCE_FUNCTION = "from reference import forward\n"
"""The same for a problem that is one function."""
REFERENCE_KERNEL = "from reference import {} as custom_kernel\n"
"""The same for a task of format `kernel`, with the name of its reference."""


class Grader(StrEnum):
    """What grades a submission."""

    NATIVE = "native"
    """Podium's two-process judge."""
    POPCORN = "popcorn"
    """The task's own eval.py or program, over the popcorn protocol."""


class Device(StrEnum):
    """The device of the inputs."""

    ANY = "any"
    """CUDA if the runner has a GPU, otherwise the CPU."""
    CUDA = "cuda"
    """CUDA only."""
    CPU = "cpu"
    """The CPU only."""


class Difficulty(StrEnum):
    """How hard a task is, as its author says."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class RankingBy(StrEnum):
    """How the times of several benchmarks become one score."""

    LAST = "last"
    """The last benchmark's time."""
    MEAN = "mean"
    """The arithmetic mean."""
    GEOM = "geom"
    """The geometric mean."""


class IsolationLayer(StrEnum):
    """A layer of the sandbox that a machine may or may not offer."""

    NAMESPACES = "namespaces"
    """Own user, PID, mount, IPC and UTS namespaces."""
    NETWORK = "network"
    """No network at all."""
    FILESYSTEM = "filesystem"
    """A read-only root, and memory-backed scratch space."""
    SECCOMP = "seccomp"
    """A filter that refuses dangerous system calls."""
    LANDLOCK = "landlock"
    """Landlock rules on files."""
    LIMITS = "limits"
    """Limits on memory, processes and files; the judge enforces time limits itself."""


class Workload(Wire):
    """One input shape of a task: the arguments of `generate_input`, in the order of task.yml."""

    args: dict[ArgName, ArgValue]

    @property
    def spec(self) -> str:
        """The case in KernelBot's one-line format, such as `size: 128; seed: 7`."""
        return "; ".join(f"{name}: {_format(value)}" for name, value in self.args.items())


def _format(value: ArgValue) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


class BuildConfig(Wire):
    """Key `config` of task.yml: `main` for Python, the other keys for a program in CUDA C++.

    `include_dirs` are folders of the task; their headers are in the same folder as its other files.
    """

    main: FileName = "eval.py"
    sources: tuple[FileName, ...] = ()
    include_dirs: tuple[str, ...] = ()
    defines: dict[str, Scalar | None] = Field(default_factory=dict)
    compile_flags: tuple[str, ...] = ()


class Launch(Wire):
    """Key `launch` of task.yml, for device code: formulas over a case's arguments."""

    kernel: str
    params: tuple[str, ...] = ()
    grid: tuple[int | str, ...]
    block: tuple[int | str, ...]
    shared: int | str = 0


class TaskDefinition(Wire):
    """Everything of one task version that a runner or a front end needs.

    `files` holds every file but the submission, by flat name; `submission_file` is the name
    under which the submission is imported. The candidate sees only `shared_files`.
    """

    name: Annotated[str, StringConstraints(pattern=TASK_NAME_FORM)]
    lang: LanguageName
    description: Annotated[str, StringConstraints(min_length=1)]
    files: dict[FileName, str]
    submission_file: FileName = "submission.py"
    shared_files: tuple[FileName, ...] = ()
    templates: dict[str, FileName] = Field(default_factory=dict)
    config: BuildConfig = BuildConfig()
    tests: tuple[Workload, ...] = ()
    benchmarks: tuple[Workload, ...] = ()
    test_timeout: Seconds = 180
    benchmark_timeout: Seconds = 180
    ranked_timeout: Seconds = 180
    ranking_by: RankingBy = RankingBy.LAST
    seed: int | None = None
    multi_gpu: bool = False
    gpus: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    format: TaskFormat = TaskFormat.KERNEL
    grader: Grader = Grader.NATIVE
    device: Device = Device.ANY
    mutates_inputs: bool = False
    flops: str | None = None
    bytes: str | None = None
    lower_bound: bool = True
    launch: Launch | None = None
    isolation: tuple[IsolationLayer, ...] = ()
    version_note: str = ""
    difficulty: Annotated[Difficulty | None, Field(exclude_if=lambda value: value is None)] = None

    @model_validator(mode="after")
    def _files_exist(self) -> Self:
        for name in (*self.shared_files, *self.templates.values()):
            if name not in self.files:
                raise ValueError(f"the task names the file {name!r} but does not have it")
        if self.submission_file in self.files:
            raise ValueError(f"{self.submission_file!r} is the submission's name; rename the file")
        return self

    def timed(self, mode: Mode) -> tuple[Workload, ...]:
        """The benchmarks that a mode times; a ranked run times only those that are scored."""
        match mode:
            case Mode.TEST | Mode.PROFILE:
                return ()
            case Mode.BENCHMARK:
                return self.benchmarks
            case Mode.RANKED:
                last = self.ranking_by is RankingBy.LAST
                return self.benchmarks[-1:] if last else self.benchmarks

    @property
    def with_all_files_shared(self) -> Self:
        """The task for judging its reference: the candidate sees every file, unlike others."""
        return self.model_copy(update={"shared_files": tuple(self.files)})

    @property
    def is_program(self) -> bool:
        """Whether its sources and the submission are first compiled into one program."""
        return bool(self.config.sources) and self.launch is None

    @property
    def world_size(self) -> int:
        """How many GPUs of one host the largest case uses; 1 unless `multi_gpu`."""
        if not self.multi_gpu:
            return 1
        sizes = (case.args.get("world_size") for case in (*self.tests, *self.benchmarks))
        return max((size for size in sizes if isinstance(size, int)), default=1)

    def limit_s(self, mode: Mode) -> int:
        """Seconds that a whole evaluation may take: the limits of all its phases together."""
        tests = self.test_timeout if mode is Mode.RANKED else 0
        profiler = PROFILE_S if mode is Mode.PROFILE else 0
        compiler = COMPILE_S if self.is_program else 0
        return tests + self.timeout_s(mode) + profiler + compiler

    def timeout_s(self, mode: Mode) -> int:
        """The time limit in seconds of a mode's own phase; a ranked run's tests are not in it."""
        match mode:
            case Mode.TEST:
                return self.test_timeout
            case Mode.BENCHMARK | Mode.PROFILE:
                return self.benchmark_timeout
            case Mode.RANKED:
                return self.ranked_timeout


GPU_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9!:_.-]{0,31}$")
"""The form of a GPU type's name; `CPU` is the name of machines without a GPU."""

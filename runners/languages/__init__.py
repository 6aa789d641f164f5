"""Languages of submissions: one file each, found by name.

A language file has a `SPEC`, and the functions `toolchain(kit)` and `build(folder, recipe, kit)`.
Both the server and the harness load it, so it imports the contract and nothing of the harness.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, Self

from runners import plugins
from runners.contract.launch import Compiled, Signature
from runners.contract.task import BuildConfig, Device, LanguageName, TaskDefinition, TaskFormat
from runners.contract.wire import Wire

if TYPE_CHECKING:
    from pathlib import Path

Kernel = Callable[[Any], Any]
"""Takes an input and returns its output; for device code it takes a `ReadyLaunch`."""


@dataclass(frozen=True, slots=True)
class LanguageSpec:
    """What the server and the harness need to know about a language without building anything."""

    name: LanguageName
    """The language's name in task.yml and in wire types."""
    title: str
    """The name that people read."""
    suffixes: tuple[str, ...]
    """The file name suffixes; the first is the usual one."""
    comment: str
    """The prefix of a comment, such as a line of a submission's header."""
    lexer: str
    """The name of its Pygments lexer."""
    config_keys: frozenset[str]
    """The keys of `config` in task.yml that it uses."""
    requires_one_of: tuple[str, ...] = ()
    """A task must have one of these keys: `launch`, or a key of `config`.

    A language that does not list `launch` here ignores that key.
    """
    device: Device = Device.ANY
    """The device on which its submissions run."""
    is_python: bool = False
    """Whether a submission is a Python module: its syntax is checked when it is submitted, and it
    can import the task's reference."""
    constant_answers: bool = False
    """Whether the check of a task can wrap a solution to make it return a constant."""
    program_compiler: str = ""
    """The tool that compiles a task's own sources and the submission into one program."""
    in_python: str = ""
    """Advice on how to submit code in this language to a leaderboard for Python."""


class Recipe(Wire):
    """What a language needs from a task; the files are in the candidate's folder."""

    language: LanguageName
    submission_file: str
    format: TaskFormat = TaskFormat.KERNEL
    config: BuildConfig = BuildConfig()
    signature: Signature | None = None
    """The required signature of device code."""

    @classmethod
    def of(cls, task: TaskDefinition, signature: Signature | None = None) -> Self:
        """Return how a task's submissions are built."""
        return cls(
            language=task.lang,
            submission_file=task.submission_file,
            format=task.format,
            config=task.config,
            signature=signature,
        )


@dataclass(frozen=True, slots=True)
class Built:
    """A submission that can be called, and what its compiler reported."""

    kernel: Kernel
    compiled: Compiled | None = None


class InvalidSubmissionError(Exception):
    """The submission is well-formed, but does not define what the task requires."""


class BuildFailedError(Exception):
    """A compiler rejected the submission: the message is its first error, `log` has all errors."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True)
class DeviceBinary:
    """Device code that was compiled for one GPU architecture."""

    entry: str
    """The kernel's lowered name in the cubin."""
    cubin: bytes
    parameter_sizes: tuple[int, ...]
    """The size in bytes of each parameter of the kernel."""
    resources: Compiled | None
    """None if the compiler's log has nothing about the kernel."""
    remarks: str
    """The compiler's warnings."""


class CudaCompiler(Protocol):
    """A library that compiles device code."""

    @property
    def title(self) -> str:
        """Return its name and version."""
        ...

    @property
    def includes(self) -> "tuple[Path, ...]":
        """Return the folders of CUDA's own headers; empty if there are none."""
        ...

    def compile(
        self, source: str, file_name: str, *, kernel: str, options: list[str]
    ) -> DeviceBinary:
        """Compile a source; BuildFailedError or InvalidSubmissionError if that fails."""
        ...


class BuildKit(Protocol):
    """What the harness offers to a language, in the candidate's process."""

    def import_file(self, folder: "Path", file_name: str) -> ModuleType:
        """Import a Python file of the submission; exceptions of the import pass through."""
        ...

    def model_kernel(self, module: ModuleType) -> Kernel | None:
        """Return a kernel that calls the module's `ModelNew` or `forward`; None without either."""
        ...

    def cache_folder(self, folder: "Path", name: str) -> "Path":
        """Return a folder whose files are passed to later candidates of the same evaluation."""
        ...

    def has_gpu(self) -> bool:
        """Return whether this machine has an NVIDIA GPU."""
        ...

    def gpu_architecture(self) -> str:
        """Return the architecture of this GPU as NVRTC calls it, such as `sm_90a`."""
        ...

    def nvrtc(self) -> CudaCompiler | None:
        """Return NVRTC; None if it is not installed."""
        ...

    def device_kernel(self, cubin: bytes, entry: str) -> Kernel:
        """Load compiled device code onto this GPU."""
        ...


@cache
def languages() -> tuple[ModuleType, ...]:
    """Load every language; those that need a GPU come last."""
    found = plugins.load_all(__name__)
    return tuple(sorted(found, key=lambda each: (each.SPEC.device is Device.CUDA, each.SPEC.name)))


def specs() -> tuple[LanguageSpec, ...]:
    """Return the spec of every language."""
    return tuple(each.SPEC for each in languages())


def language(name: LanguageName) -> ModuleType:
    """Return one language's module; LookupError with the existing names if there is none."""
    modules = {each.SPEC.name: each for each in languages()}
    if name not in modules:
        raise LookupError(f"no language {name!r}; there are {', '.join(modules)}")
    return modules[name]


def spec_of(name: LanguageName) -> LanguageSpec:
    """Return one language's spec; LookupError with the existing names if there is none."""
    spec: LanguageSpec = language(name).SPEC
    return spec


def spec_by_suffix(suffix: str) -> LanguageSpec | None:
    """Return the language whose files have this suffix, such as `.cu`; None if there is none."""
    return next((each for each in specs() if suffix in each.suffixes), None)


def names_of(chosen: Iterable[LanguageSpec]) -> tuple[LanguageName, ...]:
    """Return the names of these languages."""
    return tuple(each.name for each in chosen)

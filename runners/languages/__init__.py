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
from runners.contract.evaluation import Compiled
from runners.contract.launch import Signature
from runners.contract.task import BuildConfig, Device, LanguageName, TaskDefinition, TaskFormat
from runners.contract.wire import Wire

if TYPE_CHECKING:
    from pathlib import Path

Kernel = Callable[[Any], Any]
"""Takes an input and gives its output; for device code it takes a launch that lies ready."""


@dataclass(frozen=True, slots=True)
class LanguageSpec:
    """What the server and the harness know of a language without building anything."""

    name: LanguageName
    """In task.yml and on the wire."""
    title: str
    suffixes: tuple[str, ...]
    """How the names of its files end; the first is the usual one."""
    comment: str
    """Begins a comment, such as a line of a submission's heading."""
    lexer: str
    """The name of the Pygments lexer that colours it."""
    config_keys: frozenset[str]
    """The keys of `config` in task.yml that mean something."""
    requires_one_of: tuple[str, ...] = ()
    """Keys of task.yml, in `config` or `launch`, of which a task must have one.

    `launch` means nothing for a language that does not name it here.
    """
    device: Device = Device.ANY
    """Where its submissions run."""
    is_python: bool = False
    """A submission is a Python module: its syntax is checked when it is submitted, and it can
    import the task's reference."""
    constant_answers: bool = False
    """A check can wrap a solution so that it returns a constant."""
    program_compiler: str = ""
    """The tool that compiles a task's own sources and the submission into one program."""
    in_python: str = ""
    """How to submit it to a leaderboard for Python."""


class Recipe(Wire):
    """What a language needs to know of a task; the files lie in the candidate's own folder."""

    language: LanguageName
    submission_file: str
    format: TaskFormat = TaskFormat.KERNEL
    config: BuildConfig = BuildConfig()
    signature: Signature | None = None
    """Of a kernel of device code."""

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
    """The submission is well-formed, but does not define what the task asks for."""


class BuildFailedError(Exception):
    """A compiler refused the submission: its first error; `log` has all of them."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True)
class DeviceBinary:
    """Device code that was compiled for one GPU architecture."""

    entry: str
    """The kernel's name in the machine code."""
    cubin: bytes
    parameter_sizes: tuple[int, ...]
    """Bytes of each parameter of the kernel."""
    resources: Compiled | None
    """None where the compiler's log has nothing on the kernel."""
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
        """Return the folders of CUDA's own headers; empty where there are none."""
        ...

    def compile(
        self, source: str, file_name: str, *, kernel: str, options: list[str]
    ) -> DeviceBinary:
        """Compile a source; BuildFailedError or InvalidSubmissionError where it is refused."""
        ...


class BuildKit(Protocol):
    """What the harness offers to a language; `build` is called next to the submission."""

    def import_file(self, folder: "Path", file_name: str) -> ModuleType:
        """Import a Python file of the submission; whatever the import raises passes through."""
        ...

    def model_kernel(self, module: ModuleType) -> Kernel | None:
        """Return a kernel that calls the module's `ModelNew` or `forward`; None without either."""
        ...

    def cache_folder(self, folder: "Path", name: str) -> "Path":
        """Return the folder whose files later candidates of the same evaluation find."""
        ...

    def has_gpu(self) -> bool:
        """Return whether this machine has an NVIDIA GPU."""
        ...

    def gpu_architecture(self) -> str:
        """Return the architecture of this GPU as NVRTC calls it, such as `sm_90a`."""
        ...

    def nvrtc(self) -> CudaCompiler | None:
        """Return NVRTC; None where it is not installed."""
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
    """Return what is known of every language."""
    return tuple(each.SPEC for each in languages())


def language(name: LanguageName) -> ModuleType:
    """Return one language's module; a LookupError lists the names there are."""
    found = {each.SPEC.name: each for each in languages()}
    if name not in found:
        raise LookupError(f"no language {name!r}; there are {', '.join(found)}")
    return found[name]


def spec_of(name: LanguageName) -> LanguageSpec:
    """Return what is known of one language; a LookupError lists the names there are."""
    spec: LanguageSpec = language(name).SPEC
    return spec


def spec_by_suffix(suffix: str) -> LanguageSpec | None:
    """Return the language whose files end so, such as `.cu`; None where there is none."""
    return next((each for each in specs() if suffix in each.suffixes), None)


def names_of(found: Iterable[LanguageSpec]) -> tuple[LanguageName, ...]:
    """Return the names of these languages."""
    return tuple(each.name for each in found)

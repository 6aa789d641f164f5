"""CUDA C++ device code: one kernel without a host part, compiled by NVRTC in the candidate."""

from pathlib import Path

from pydantic import ValidationError

from runners.contract.launch import Compiled, Signature
from runners.contract.task import BuildConfig, Device, Scalar
from runners.contract.wire import Wire
from runners.languages import (
    BuildFailedError,
    BuildKit,
    Built,
    InvalidSubmissionError,
    LanguageSpec,
    Recipe,
)

SPEC = LanguageSpec(
    name="cu",
    title="CUDA C++",
    suffixes=(".cu", ".cuh", ".cpp", ".hip"),
    comment="//",
    lexer="cpp",
    config_keys=frozenset({"sources", "include_dirs", "defines", "compile_flags"}),
    requires_one_of=("sources", "launch"),
    device=Device.CUDA,
    program_compiler="nvcc",
    in_python=(
        "compile the CUDA source inline, as with torch.utils.cpp_extension.load_inline, in a .py "
        "file"
    ),
)
CACHE = "device"
"""The name of the folder in which later candidates find what the first one compiled."""
_CUBIN, _LISTING = "kernel.cubin", "kernel.json"
_FIXED_OPTIONS = ("-lineinfo", "-default-device")
_STANDARD = "--std=c++20"


class CachedKernel(Wire):
    """What the cache folder has in addition to the cubin."""

    entry: str
    compiled: Compiled | None
    """None if the compiler's log has nothing about the kernel."""


def toolchain(kit: BuildKit) -> str | None:
    """Return the library that compiles device code here; None without a library or GPU."""
    compiler = kit.nvrtc() if kit.has_gpu() else None
    return None if compiler is None or not compiler.includes else compiler.title


def build(folder: Path, recipe: Recipe, kit: BuildKit) -> Built:
    """Return the submission's kernel.

    The first candidate of an evaluation compiles it; later ones load it from the cache folder.
    """
    cached = kit.cache_folder(folder, CACHE)
    try:
        kernel = CachedKernel.model_validate_json((cached / _LISTING).read_bytes())
        cubin = (cached / _CUBIN).read_bytes()
    except (OSError, ValidationError):
        kernel, cubin = compile_kernel(folder, recipe, kit, kit.gpu_architecture())
        cached.mkdir(parents=True, exist_ok=True)
        (cached / _CUBIN).write_bytes(cubin)
        (cached / _LISTING).write_text(kernel.model_dump_json())
    return Built(kit.device_kernel(cubin, kernel.entry), kernel.compiled)


def compile_kernel(
    folder: Path, recipe: Recipe, kit: BuildKit, target: str
) -> tuple[CachedKernel, bytes]:
    """Compile for the architecture `target` in NVRTC's notation; print the compiler's warnings.

    BuildFailedError with the compiler's first error; InvalidSubmissionError if the kernel does not
    have the signature with which the task calls it.
    """
    compiler, signature = kit.nvrtc(), recipe.signature
    if compiler is None or signature is None:
        raise BuildFailedError("this machine cannot compile device code", "")
    try:
        code = compiler.compile(
            (folder / recipe.submission_file).read_text(encoding="utf-8"),
            recipe.submission_file,
            kernel=signature.kernel,
            options=options(recipe.config, target, (folder, *compiler.includes)),
        )
    except BuildFailedError as error:
        path = f"{folder}/"
        raise BuildFailedError(str(error).replace(path, ""), error.log.replace(path, "")) from error
    except InvalidSubmissionError as error:
        raise InvalidSubmissionError(f"{error}, called as {signature.text}") from error
    _check_parameters(signature, code.parameter_sizes)
    if code.remarks:
        print(code.remarks)  # noqa: T201 - the log
    return CachedKernel(entry=code.entry, compiled=code.resources), code.cubin


def options(config: BuildConfig, target: str, includes: tuple[Path, ...]) -> list[str]:
    """Return NVRTC's options."""
    own_standard = any(flag.lstrip("-").startswith("std=") for flag in config.compile_flags)
    return [
        f"--gpu-architecture={target}",
        *_FIXED_OPTIONS,
        *(() if own_standard else (_STANDARD,)),
        *(f"-D{name}{_define_suffix(value)}" for name, value in config.defines.items()),
        *(f"-I{folder}" for folder in (*config.include_dirs, *includes)),
        *config.compile_flags,
    ]


def _define_suffix(value: Scalar | None) -> str:
    if value is None:
        return ""
    return f"={int(value)}" if isinstance(value, bool) else f"={value}"


def _check_parameters(wanted: Signature, sizes: tuple[int, ...]) -> None:
    if sizes == wanted.sizes:
        return
    has, needs = _describe_sizes(sizes), _describe_sizes(wanted.sizes)
    raise InvalidSubmissionError(
        f"`{wanted.kernel}` takes {has}; the task calls it with {needs}: {wanted.text}"
    )


def _describe_sizes(sizes: tuple[int, ...]) -> str:
    if not sizes:
        return "no parameters"
    count = "1 parameter" if len(sizes) == 1 else f"{len(sizes)} parameters"
    return f"{count} of {', '.join(map(str, sizes))} bytes"

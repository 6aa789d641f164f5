"""Rules for tasks whose submissions the judge builds or launches."""

import posixpath
from collections.abc import Mapping
from bot.domain.tasks.yaml_document import Document
from bot.domain.tasks.bundle import TaskBundle
from runners.contract.task import BuildConfig
import re
from collections.abc import Sequence
from runners.contract.launch import LaunchError, LaunchPlan
from runners.contract.parameters import BufferArgument
from runners.contract.task import BuildConfig, Launch, Workload


_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c")
_OURS = frozenset(
    {"-o", "--output-file", "-c", "--compile", "-E", "-ptx", "-cubin", "-run", "--run"}
)
"""Compiler flags that control its output."""


def check_program(config: BuildConfig, document: Document) -> None:
    """Raise UserError with the line for options that no compiler accepts."""
    for i, name in enumerate(config.sources):
        if not name.endswith(_SUFFIXES):
            words = (
                f"{name!r} is not a source file: name files that end in {', '.join(_SUFFIXES)}; "
                "headers are found automatically when a source includes them"
            )
            raise document.refusal(("config", "sources", i), words)
        if name in config.sources[:i]:
            raise document.refusal(("config", "sources", i), f"{name!r} appears twice")
    for name in config.defines:
        if not (name.isascii() and name.isidentifier()):
            words = f"{name!r} is not a macro name; use letters, digits and '_', as in BLOCK_SIZE"
            raise document.refusal(("config", "defines", name), words)
    for i, flag in enumerate(config.compile_flags):
        if flag.split("=")[0] in _OURS:
            words = f"{flag!r}: the runner sets the output itself; remove this flag"
            raise document.refusal(("config", "compile_flags", i), words)


def check_evaluation(
    config: BuildConfig, document: Document, files: Mapping[str, str], submission_file: str
) -> None:
    """Raise UserError when the sources lack the task's own program or the submission."""
    path = ("config", "sources")
    if not set(config.sources) - {submission_file}:
        words = "none of the sources belongs to the task; add the one with `main`, such as eval.cu"
        raise document.refusal(path, words)
    named = submission_file in config.sources
    if not named and not any(f'"{submission_file}"' in text for text in files.values()):
        words = f"{submission_file!r} is neither a source nor included by one, so it would not be compiled; add it to sources"
        raise document.refusal(path, words)


def headers(
    config: BuildConfig, document: Document, bundle: TaskBundle, taken: Mapping[str, str]
) -> dict[str, str]:
    """Return the files of `include_dirs` by flat name, as they are next to the sources.

    UserError when a folder is missing, is outside the task, or has a subfolder.
    """
    found: dict[str, str] = {}
    for i, written in enumerate(config.include_dirs):
        folder = posixpath.normpath(written)
        if folder == ".":
            continue  # the task's own folder is searched anyway
        fault = _fault_of(written, folder, bundle)
        if not fault:
            for name in bundle.under(folder):
                text = bundle.text(posixpath.join(folder, name))
                if {**taken, **found}.get(name, text) != text:
                    fault = f"{written!r} has a {name!r}, and another file has that name already"
                found[name] = text
        if fault:
            raise document.refusal(("config", "include_dirs", i), fault)
    return found


def _fault_of(written: str, folder: str, bundle: TaskBundle) -> str:
    if folder.startswith(("/", "..")):
        return (
            f"{written!r} is outside the task's folder, and runners only have the compiler's own "
            "headers; copy the headers you need into the task's folder"
        )
    inside = posixpath.join(bundle.root, folder) + "/"
    paths = [path.removeprefix(inside) for path in bundle.files if path.startswith(inside)]
    if not paths:
        return f"{written!r}: the task has no folder with this name"
    deeper = next((path for path in paths if "/" in path), None)
    if deeper is not None:
        return (
            f"{written!r} has a folder in it ({posixpath.dirname(deeper)!r}), but a task's files "
            "are stored in one flat folder; list that folder too, and include its files without "
            "a folder name"
        )
    return ""


MAX_CONFIG = 16 << 10
"""The maximum bytes of `config` as sent to each candidate."""
_SWITCHES = (
    "use_fast_math", "extra-device-vectorization", "restrict", "device-int128", "disable-warnings",
)  # fmt: skip
_VALUED = (
    "std", "maxrregcount", "fmad", "ftz", "prec-sqrt", "prec-div", "ptxas-options", "diag-suppress",
)  # fmt: skip
"""NVRTC options that a task may set; source: NVRTC's documentation, "Supported Options"."""
_FLAG = re.compile(rf"--?(?:{'|'.join(_SWITCHES)}|(?:{'|'.join(_VALUED)})=[\w+.,=-]+)")
_MACRO = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check_launch(launch: Launch, cases: Sequence[Workload], document: Document) -> None:
    """Refuse a launch that has no values for some case, or that writes to no output."""
    try:
        plan = LaunchPlan.of(launch)
        for case in cases:
            plan.numbers(case)
        plan.signature(cases)
    except LaunchError as error:
        raise document.refusal(("launch", error.key), str(error)) from error
    buffers = (each for each in plan.parameters if isinstance(each, BufferArgument))
    if not any(each.kind == "out" for each in buffers):
        words = "launch.params: list the output that the kernel writes, as in [in0, out0, size]"
        raise document.refusal(("launch", "params"), words)


def check_config(config: BuildConfig, document: Document) -> None:
    """Refuse what NVRTC, the compiler of device code, does not know or would ignore."""
    if len(config.model_dump_json()) > MAX_CONFIG:
        words = f"'config' is larger than {MAX_CONFIG:,} bytes; move long text into a header file"
        raise document.refusal(("config",), words)
    if config.sources:
        words = "a task with a 'launch' compiles only the submission; remove 'sources'"
        raise document.refusal(("config", "sources"), words)
    for i, folder in enumerate(config.include_dirs):
        if not folder.startswith("/"):
            words = f"{folder!r} is not a folder on the runner, such as /cutlass/include"
            beside = "headers listed in files are found automatically"
            raise document.refusal(("config", "include_dirs", i), f"{words}; {beside}")
    for name in config.defines:
        if not _MACRO.fullmatch(name):
            raise document.refusal(("config", "defines", name), f"{name!r} is not a macro name")
    _check_flags(config.compile_flags, document)


def _check_flags(flags: Sequence[str], document: Document) -> None:
    for i, flag in enumerate(flags):
        if not _FLAG.fullmatch(flag):
            known = ", ".join(
                [f"--{each}" for each in _SWITCHES] + [f"--{each}=" for each in _VALUED]
            )
            words = f"{flag!r} is not an accepted NVRTC option; use one of: {known}"
            raise document.refusal(("config", "compile_flags", i), words)

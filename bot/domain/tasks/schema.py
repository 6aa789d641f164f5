"""The keys of task.yml: their types, and the constraints within one document."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError

from bot.domain.errors import UserError
from bot.domain.tasks.yaml_document import Document, Path, unknown_key, validation_refusal
from runners.contract import task
from runners.contract.formula import FormulaError, parse_formula
from runners.contract.launch import LaunchError, LaunchPlan
from runners.contract.parameters import BufferArgument
from runners.contract.wire import Wire
from runners.languages import names_of, spec_of, specs

SUBMISSION_SOURCE = "@SUBMISSION@"
"""The `source` of the file that is the submission."""
MAX_CASES = 200


def _known_language(name: str) -> str:
    names = names_of(specs())
    if name not in names:
        words = " or ".join(repr(each) for each in names)
        raise PydanticCustomError("enum", "Input should be {names}", {"names": words})
    return name


Text = Annotated[str, StringConstraints(min_length=1)]


class FileEntry(Wire):
    """One item of the key `files`."""

    name: task.FileName
    source: Text


class TaskYaml(Wire):
    """task.yml as written; a key that `TaskDefinition` has too means the same there."""

    files: Annotated[tuple[FileEntry, ...], Field(min_length=1, max_length=100)]
    lang: Annotated[task.LanguageName, BeforeValidator(_known_language)]
    config: task.BuildConfig = task.BuildConfig()
    description: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    templates: dict[
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+-]{0,31}$")], Text
    ] = Field(default_factory=dict)
    tests: tuple[task.Workload, ...] = ()
    benchmarks: tuple[task.Workload, ...] = ()
    test_timeout: task.Seconds = 180
    benchmark_timeout: task.Seconds = 180
    ranked_timeout: task.Seconds = 180
    ranking_by: task.RankingBy = task.RankingBy.LAST
    seed: int | None = None
    multi_gpu: bool = False
    gpus: tuple[Annotated[str, StringConstraints(pattern=task.GPU_NAME.pattern)], ...] = ()
    libraries: tuple[Text, ...] = ()
    format: task.TaskFormat = task.TaskFormat.KERNEL
    grader: task.Grader | None = None
    device: task.Device | None = None
    mutates_inputs: bool = False
    flops: int | str | None = None
    bytes: int | str | None = None
    lower_bound: bool = True
    launch: task.Launch | None = None
    isolation: tuple[task.IsolationLayer, ...] = ()
    version_note: str = ""
    difficulty: task.Difficulty | None = None
    validation: dict[str, object] | None = None
    """KernelBot's later validation of the best submissions, which Podium ignores."""


def read_schema(document: Document, *, strict: bool) -> tuple[TaskYaml, tuple[str, ...]]:
    """Return a document's validated keys, and the warnings when not `strict`."""
    warnings = _unknown_keys(document, strict=strict)
    written = _validate(document)
    return written, warnings + _check(written, document, strict=strict)


def _unknown_keys(document: Document, *, strict: bool) -> tuple[str, ...]:
    known = TaskYaml.model_fields
    unknown = [key for key in document.value if key not in known]
    refusals = [document.refusal((key,), unknown_key(key, known)) for key in unknown]
    if refusals and strict:
        raise refusals[0]
    return tuple(each.message for each in refusals)


def _validate(document: Document) -> TaskYaml:
    known = {key: value for key, value in document.value.items() if key in TaskYaml.model_fields}
    for kind in ("tests", "benchmarks"):
        cases = known.get(kind)
        if cases is None:
            known.pop(kind, None)
        elif isinstance(cases, list):
            known[kind] = [{"args": case} for case in cases]
    try:
        return TaskYaml.model_validate_json(json.dumps(known))
    except ValidationError as error:
        raise _schema_refusal(document, error) from error


def _schema_refusal(document: Document, error: ValidationError) -> UserError:
    findings = error.errors(include_url=False)
    found = next((each for each in findings if each["type"] == "extra_forbidden"), None)
    if found is not None:
        path = found["loc"]
        known: dict[str, type[Wire]] = {
            "config": task.BuildConfig,
            "files": FileEntry,
            "launch": task.Launch,
        }
        model = known.get(str(path[0]), TaskYaml)
        return document.refusal(path, unknown_key(str(path[-1]), model.model_fields))
    unnamed = next((each for each in findings if _is_file_name(each["loc"])), None)
    if unnamed is not None and unnamed["type"] == "string_pattern_mismatch":
        words = (
            "is not a valid file name; use one without folders (only `source` may contain folders)"
        )
        return document.refusal(unnamed["loc"], f"{unnamed['input']!r} {words}")
    return validation_refusal(document, error)


def _is_file_name(path: Path) -> bool:
    return path[:2] == ("config", "sources") or (path[0] == "files" and path[-1] == "name")


def _check(written: TaskYaml, document: Document, *, strict: bool) -> tuple[str, ...]:
    _check_names(written, document)
    _check_submission_file(written, document)
    _check_language(written, document)
    _check_sources(written, document)
    _check_cases(written, document)
    _check_formulas(written, document)
    if written.launch is not None:
        _check_code(written, written.launch, document)
    warnings = []
    for kind, use in (("tests", "checked against"), ("benchmarks", "ranked by")):
        if getattr(written, kind):
            continue
        refused = document.refusal(
            (kind,), f"{kind!r} is empty; submissions are {use} them; add at least one"
        )
        if strict:
            raise refused
        warnings.append(refused.message)
    return tuple(warnings)


def _check_names(written: TaskYaml, document: Document) -> None:
    names = [entry.name for entry in written.files]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise document.refusal(("files", i), f"the file name {name!r} appears twice")


def _check_submission_file(written: TaskYaml, document: Document) -> None:
    count = sum(entry.source == SUBMISSION_SOURCE for entry in written.files)
    if count != 1:
        example = '{"name": "submission.py", "source": "@SUBMISSION@"}'
        raise document.refusal(
            ("files",),
            f"{count} files have the source {SUBMISSION_SOURCE}; exactly one file must have it, "
            f"as in {example}",
        )


def _check_language(written: TaskYaml, document: Document) -> None:
    """Refuse `launch` and keys of `config` that the language would ignore."""
    spec = spec_of(written.lang)
    foreign = sorted(written.config.model_fields_set - spec.config_keys)
    path = ("config", *foreign[:1])
    if "launch" not in spec.requires_one_of and written.launch is not None:
        foreign, path = ["launch"], ("launch",)
    if foreign:
        raise document.refusal(
            path, f"{foreign[0]!r} has no effect with lang: {written.lang}; remove it"
        )


def _check_sources(written: TaskYaml, document: Document) -> None:
    names = {entry.name for entry in written.files}
    missing = next((name for name in written.config.sources if name not in names), None)
    if missing is not None:
        raise document.refusal(("config", "sources"), f"{missing!r} is not listed in files")
    wanted = spec_of(written.lang).requires_one_of
    if wanted and not any(_has(written, key) for key in wanted):
        others = "".join(f" (or a {key!r})" for key in wanted[1:])
        raise document.refusal(
            ("config",), f"a task with lang: {written.lang} needs {wanted[0]!r}{others}"
        )
    if written.launch is None:
        _check_program(written.config, document)


def _has(written: TaskYaml, key: str) -> bool:
    return bool(getattr(written.config, key, None) or getattr(written, key, None))


def _check_cases(written: TaskYaml, document: Document) -> None:
    for kind in ("tests", "benchmarks"):
        cases: tuple[task.Workload, ...] = getattr(written, kind)
        if len(cases) > MAX_CASES:
            raise document.refusal((kind,), f"{len(cases)} {kind}; at most {MAX_CASES} are allowed")
        for i, case in enumerate(cases):
            if written.multi_gpu and "world_size" not in case.args:
                raise document.refusal(
                    (kind, i),
                    "every case of a multi_gpu task needs a world_size, as in world_size: 8",
                )


def _check_formulas(written: TaskYaml, document: Document) -> None:
    for path, text in _formulas(written):
        try:
            formula = parse_formula(str(text))
            for case in (*written.tests, *written.benchmarks):
                _require_positive(formula.value(case.args), case)
        except FormulaError as error:
            raise document.refusal(path, f"{'.'.join(path)}: {error}") from error


def _check_code(written: TaskYaml, launch: task.Launch, document: Document) -> None:
    if written.format is not task.TaskFormat.KERNEL:
        words = f"format: {written.format} is only for lang: py; remove it, or remove 'launch'"
        raise document.refusal(("format",), words)
    if written.device not in {None, task.Device.CUDA}:
        raise document.refusal(("device",), "device code always runs on 'cuda'; remove 'device'")
    check_config(written.config, document)
    check_launch(launch, (*written.tests, *written.benchmarks), document)


def _formulas(written: TaskYaml) -> Iterator[tuple[tuple[str, ...], int | str]]:
    """Yield the formulas of `flops` and `bytes`, with their paths."""
    if written.flops is not None:
        yield ("flops",), written.flops
    if written.bytes is not None:
        yield ("bytes",), written.bytes


def _require_positive(value: float, case: task.Workload) -> None:
    if value < 1:
        raise FormulaError(f"{value:g} for the case {case.spec!r}; the value must be at least 1")


_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c")
_OUTPUT_FLAGS = frozenset(
    {"-o", "--output-file", "-c", "--compile", "-E", "-ptx", "-cubin", "-run", "--run"}
)
"""Flags by which a compiler chooses what to write, and where."""


def _check_program(config: task.BuildConfig, document: Document) -> None:
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
        if flag.split("=")[0] in _OUTPUT_FLAGS:
            words = f"{flag!r}: the runner sets the output itself; remove this flag"
            raise document.refusal(("config", "compile_flags", i), words)


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


def check_launch(launch: task.Launch, cases: Sequence[task.Workload], document: Document) -> None:
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


def check_config(config: task.BuildConfig, document: Document) -> None:
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
            hint = "headers listed in files are found automatically"
            raise document.refusal(("config", "include_dirs", i), f"{words}; {hint}")
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

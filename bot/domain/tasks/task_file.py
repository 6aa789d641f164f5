"""The only parser of task.yml: turns a bundle into a `TaskDefinition`."""

import hashlib
import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TASK_FILE, TaskBundle
from bot.domain.tasks.grading import NO_PROGRAM, Basis, Grading, choose_grader
from bot.domain.tasks.lint import defined_names, parse_python, wants_cuda
from bot.domain.tasks.schema import SUBMISSION_SOURCE, TaskYaml, read_schema
from bot.domain.tasks.yaml_document import Document, Path, read_document, validation_refusal
from runners.contract.evaluation import RoundPolicy
from runners.contract.task import BuildConfig, Device, Grader, TaskDefinition, TaskFormat
from runners.languages import spec_of

REFERENCE = "reference.py"
MAX_TASK = 8 << 20
"""The maximum bytes of a task as sent: one request contains it and the largest submission."""
ROUNDS = "rounds.json"
"""The file that says how kernels are timed, in a task made from an evaluation server request."""

_SHARED = frozenset({"task.py", "utils.py"})
_HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inc", ".inl")
_NATIVE = {
    TaskFormat.KERNEL: frozenset({"generate_input", "check_implementation"}),
    TaskFormat.KERNELBENCH: frozenset({"Model", "get_inputs", "get_init_inputs"}),
}


@dataclass(frozen=True, slots=True)
class _Source:
    """One task being read."""

    written: TaskYaml
    document: Document
    bundle: TaskBundle
    chosen: Grader | None
    """The grader that the creator chose when publishing; it overrides task.yml."""

    def read(self, path: Path, source: str) -> str:
        """Return the text of a file that task.yml names at `path`."""
        try:
            return self.bundle.text(source)
        except UserError as error:
            raise self.document.refusal(path, error.message) from error


@dataclass(frozen=True, slots=True)
class ParsedTask:
    """A task, the warnings about its ignored keys, and which grader grades it."""

    task: TaskDefinition
    warnings: tuple[str, ...] = ()
    grading: Grading = NO_PROGRAM

    def task_for(self, grader: Grader | None) -> TaskDefinition:
        """Return the task under this grader, one of those that its check may choose."""
        other = self.grading.other_task(self.task)
        return self.task if other is None or other.grader is not grader else other


def parse_task(
    bundle: TaskBundle, *, name: str | None = None, strict: bool = True
) -> TaskDefinition:
    """Return the task of a bundle; UserError with file and line when anything is invalid."""
    return read_task(bundle, name=name, strict=strict).task


def read_task(
    bundle: TaskBundle,
    *,
    name: str | None = None,
    strict: bool = True,
    grader: Grader | None = None,
) -> ParsedTask:
    """Return the task as `parse_task` does, its grading and, when not strict, the warnings.

    `name` defaults to the bundle's, `grader` to the one in task.yml.
    """
    path = bundle.locate(TASK_FILE)
    if path not in bundle.files:
        raise UserError("bad-task", f"{path}: there is no such file; every task folder needs one")
    document = read_document(bundle.files[path], path)
    written, warnings = read_schema(document, strict=strict)
    own_name = bundle.name or posixpath.basename(bundle.root)
    source = _Source(written, document, bundle, grader or written.grader)
    task, grading = _define(source, name or own_name)
    return ParsedTask(task, warnings, grading)


def digest(task: TaskDefinition) -> str:
    """Return a hash of what makes a task version: all except its note and its difficulty."""
    content = task.model_dump(mode="json", exclude={"version_note", "difficulty"})
    content["files"] = sorted(content["files"].items())
    content["shared_files"] = sorted(content["shared_files"])
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def own_rounds(task: TaskDefinition) -> RoundPolicy | None:
    """Return the rounds of the request from which a task was made; None for a published task.

    No task.yml can combine this format with the native grader.
    """
    judged = task.format is TaskFormat.IO_CONTRACT and task.grader is Grader.NATIVE
    if not judged or ROUNDS not in task.files:
        return None
    return RoundPolicy.model_validate_json(task.files[ROUNDS])


def _define(source: _Source, name: str) -> tuple[TaskDefinition, Grading]:
    written = source.written
    files = _read_files(source)
    if _is_program(written):
        files |= _headers(written.config, source.document, source.bundle, files)
        _check_evaluation(written.config, source.document, files, _submission_file(written))
    shared = tuple(file for file in files if _is_shared(file, written))
    grading = _grading(source, files)
    templates = _add_templates(source, files)
    same = written.model_dump(
        exclude={"files", "templates", "grader", "device", "flops", "bytes", "validation"},
        exclude_unset=True,
    )
    try:
        task = TaskDefinition(
            name=name,
            files=files,
            submission_file=_submission_file(written),
            shared_files=shared,
            templates=templates,
            grader=grading.grader,
            device=written.device or _device(files, written, grading.grader),
            flops=None if written.flops is None else str(written.flops),
            bytes=None if written.bytes is None else str(written.bytes),
            **same,
        )
    except ValidationError as error:
        raise _definition_refusal(source.document, name, error) from error
    _check_size(task, source.document)
    return task, grading


def _is_program(written: TaskYaml) -> bool:
    return bool(written.config.sources) and written.launch is None


def _check_size(task: TaskDefinition, document: Document) -> None:
    length = len(task.model_dump_json().encode())
    if length > MAX_TASK:
        raise UserError(
            "bad-task",
            f"{document.file}: the task has {length:,} bytes including its files; at most "
            f"{MAX_TASK:,} are allowed, so compute large data in reference.py",
        )


def _definition_refusal(document: Document, name: str, error: ValidationError) -> UserError:
    if error.errors(include_url=False)[0]["loc"] != ("name",):
        return validation_refusal(document, error)
    return UserError(
        "bad-task",
        f"{document.file}: {name!r} is not a valid task name; name its folder or zip with at "
        "most 64 lowercase letters, digits, '-' and '_', as in 'vector-add'",
    )


def _submission_file(written: TaskYaml) -> str:
    return next(entry.name for entry in written.files if entry.source == SUBMISSION_SOURCE)


def _read_files(source: _Source) -> dict[str, str]:
    return {
        entry.name: source.read(("files", i), entry.source)
        for i, entry in enumerate(source.written.files)
        if entry.source != SUBMISSION_SOURCE
    }


def _is_shared(file: str, written: TaskYaml) -> bool:
    if "main" in spec_of(written.lang).config_keys and file == written.config.main:
        return False
    return file in _SHARED or file.endswith(_HEADERS)


def _add_templates(source: _Source, files: dict[str, str]) -> dict[str, str]:
    """Read the templates into `files`; one whose name is taken is stored under its language."""
    templates: dict[str, str] = {}
    for language, path in source.written.templates.items():
        text = source.read(("templates", language), path)
        name = posixpath.basename(path)
        if name == _submission_file(source.written) or files.get(name, text) != text:
            name = f"template-{language}{posixpath.splitext(name)[1]}"
        files[name] = text
        templates[language] = name
    return templates


def _grading(source: _Source, files: dict[str, str]) -> Grading:
    """Return which grader grades the task; UserError if none can, or if the chosen one cannot."""
    written = source.written
    faults = {grader: _fault(grader, source, files) for grader in Grader}
    if source.chosen is not None and faults[source.chosen]:
        raise source.document.refusal(("grader",), faults[source.chosen])
    if all(faults.values()):
        words = faults[Grader.NATIVE]
        if written.launch is None:
            words += " (or add an eval.py to the task)"
        raise source.document.refusal(("files",), words)
    sources = sorted(set(written.config.sources) - {_submission_file(written)})
    program = ", ".join(sources) if _is_program(written) else written.config.main
    grading = choose_grader(source.chosen, faults, program, _own_evaluation(source, files))
    if grading.basis is Basis.ONLY or grading.grader is source.chosen is Grader.POPCORN:
        return grading
    return replace(grading, other_device=_other_device(source, files, grading.grader))


def _own_evaluation(source: _Source, files: dict[str, str]) -> str | None:
    """Return the text of the task's evaluation; empty for a file that task.yml does not list."""
    main = source.written.config.main
    unlisted = posixpath.join(source.bundle.root, main) in source.bundle.files
    return files.get(main, "" if unlisted else None)


def _other_device(source: _Source, files: dict[str, str], grader: Grader) -> Device:
    """Return the task's device under the other grader."""
    other = Grader.POPCORN if grader is Grader.NATIVE else Grader.NATIVE
    written = source.written
    try:
        return written.device or _device(files, written, other)
    except UserError:  # Python cannot parse the program; running it will show that
        return _device(files, written, grader)


def _fault(grader: Grader, source: _Source, files: dict[str, str]) -> str:
    """Return why a grader cannot grade the task; empty when it can."""
    written = source.written
    match grader:
        case Grader.NATIVE if _native_obstacle(written):
            return _native_obstacle(written)
        case Grader.NATIVE:
            wanted = _NATIVE[written.format] | _required_by_launch(written)
            missing = sorted(wanted - _reference_names(source, files))
            return f"{REFERENCE} must define {' and '.join(missing)}" if missing else ""
        case Grader.POPCORN if written.launch is not None:
            return "a task with a 'launch' needs grader 'native'"
        case Grader.POPCORN:
            present = bool(written.config.sources) or written.config.main in files
            return "" if present else f"{written.config.main!r} is not listed in files"


def _native_obstacle(written: TaskYaml) -> str:
    """Return why Podium's judge cannot grade it, regardless of its files; empty when it can."""
    if written.multi_gpu:
        return "a task with multi_gpu needs its own evaluation program and grader 'popcorn'"
    if _is_program(written):
        return (
            f"a {written.lang!r} task with 'sources' needs its own evaluation program and grader "
            "'popcorn'"
        )
    if written.format not in _NATIVE:
        return f"format: {written.format} is only for kernels submitted without a task"
    return ""


def _required_by_launch(written: TaskYaml) -> frozenset[str]:
    """Return what a launch needs: from `ref_kernel` the judge knows the output's shape."""
    return frozenset({"ref_kernel"}) if written.launch is not None else frozenset()


def _reference_names(source: _Source, files: dict[str, str]) -> frozenset[str]:
    entry = next((entry for entry in source.written.files if entry.name == REFERENCE), None)
    if entry is None or entry.source == SUBMISSION_SOURCE:
        return frozenset()
    return defined_names(parse_python(files[REFERENCE], source.bundle.locate(entry.source)))


def _device(files: dict[str, str], written: TaskYaml, grader: Grader) -> Device:
    if spec_of(written.lang).device is not Device.ANY:
        return spec_of(written.lang).device
    sources = {name: text for name, text in files.items() if name.endswith(".py")}
    if grader is Grader.NATIVE:
        sources.pop(written.config.main, None)  # the unused evaluation program
    trees = [parse_python(text, name) for name, text in sources.items()]
    return Device.CUDA if any(wants_cuda(tree) for tree in trees) else Device.ANY


def _check_evaluation(
    config: BuildConfig, document: Document, files: Mapping[str, str], submission_file: str
) -> None:
    """Raise UserError unless the sources have the task's own program and compile the submission."""
    path = ("config", "sources")
    if not set(config.sources) - {submission_file}:
        words = "none of the sources belongs to the task; add the one with `main`, such as eval.cu"
        raise document.refusal(path, words)
    named = submission_file in config.sources
    if not named and not any(f'"{submission_file}"' in text for text in files.values()):
        words = (
            f"{submission_file!r} is neither a source nor included by one, so it would not be "
            "compiled; add it to sources"
        )
        raise document.refusal(path, words)


def _headers(
    config: BuildConfig, document: Document, bundle: TaskBundle, other_files: Mapping[str, str]
) -> dict[str, str]:
    """Return the files of `include_dirs` by name without folder: all files go into one folder.

    UserError when a folder is missing, is outside the task, or has a subfolder.
    """
    headers: dict[str, str] = {}
    for i, written in enumerate(config.include_dirs):
        folder = posixpath.normpath(written)
        if folder == ".":
            continue  # the task's own folder is searched anyway
        fault = _folder_fault(written, folder, bundle)
        if not fault:
            for name in bundle.under(folder):
                text = bundle.text(posixpath.join(folder, name))
                if {**other_files, **headers}.get(name, text) != text:
                    fault = f"{written!r} has a {name!r}, but another file already has that name"
                headers[name] = text
        if fault:
            raise document.refusal(("config", "include_dirs", i), fault)
    return headers


def _folder_fault(written: str, folder: str, bundle: TaskBundle) -> str:
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

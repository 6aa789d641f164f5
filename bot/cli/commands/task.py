"""`podium task`: check, publish, pack, create and import tasks."""

import asyncio
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    command_line,
    program,
)
from bot.cli.errors import ExitCode
from bot.cli.files import LoadedTask, Root, load_tasks, pack_competition, read_problems
from bot.cli.json_output import published_json, task_report_json
from bot.domain.board import NOBODY, Pins, parse_pins, show_pins
from bot.domain.errors import UserError
from bot.domain.publication import Draft, PublishedDraft, PublishRequest
from bot.domain.tasks.bundle import TASK_FILE, read_files, read_zip, write_zip
from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import Level, TaskReport
from bot.domain.tasks.scaffold import PRECISIONS, problem_tasks, scaffold
from bot.domain.tasks.task_file import parse_task
from bot.domain.times import parse_deadline, show_deadline
from bot.reports.tasks import task_check_report
from bot.services.publishing.pipeline import check_draft
from runners.contract.evaluation import CPU
from runners.contract.task import Grader

GROUP = "Check, publish, pack, create and import tasks."

TaskPaths = Annotated[
    list[Path],
    typer.Argument(help="Task folders, task zips, folders of tasks, or a competition YAML"),
]
Gpus = Annotated[list[str] | None, typer.Option("--gpu", help="GPU type; can be repeated")]
Pools = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        help="Pool for ranked runs, such as modal or A100=local; `any` allows every pool; "
        "can be repeated",
    ),
]
GraderOption = Annotated[
    Grader | None,
    typer.Option(
        help="Grader of a task that ships an eval.py: native (Podium's judge) or popcorn (its "
        "eval.py)"
    ),
]
_DEFAULT_FOLDER = Path("tasks")
_KERNELBENCH = "kernelbench"


def check(
    ctx: typer.Context,
    paths: TaskPaths,
    *,
    gpu: Annotated[
        str | None, typer.Option(help="GPU type (default: the first one available)")
    ] = None,
    grader: GraderOption = None,
    root: Root = None,
    as_json: AsJson = False,
) -> int:
    """Lint tasks and run their solutions; exit code 1 if a task has errors."""
    line = command_line(ctx)
    reports = asyncio.run(_check(line, load_tasks(line, paths, root, grader), gpu))
    if as_json:
        line.write_json([task_report_json(each) for each in reports])
    else:
        for report in reports:
            line.draw(task_check_report(report))
        if any(report.undecided for report in reports):
            line.say(f"before you publish the task, {HOW_TO_CHOOSE}")
    return ExitCode.PASSED if all(report.ok for report in reports) else ExitCode.VERDICT


async def _check(
    line: CommandLine, loaded: Sequence[LoadedTask], gpu: str | None
) -> tuple[TaskReport, ...]:
    async with line.installation.runners() as runners:
        offers = [await runner.capabilities() for runner in runners]
        default = next((name for offer in offers for name in offer.gpus), CPU)
        reports: list[TaskReport] = []
        for each in loaded:
            gpus = (gpu,) if gpu else each.gpus or (default,)
            line.say(f"checking {each.path} on {', '.join(gpus)}")
            board = None if each.problem is None else each.problem.name
            draft = Draft(each.bundle, each.task, PublishRequest(NOBODY, board), each.grading)
            reports += (await check_draft(runners, draft, gpus))[1]
    return tuple(reports)


@dataclass(frozen=True, slots=True)
class _PublishOptions:
    """The command line's options for boards; they override a competition's."""

    name: str | None
    gpus: tuple[str, ...]
    deadline: datetime | None
    endless: bool
    unchecked: bool
    pins: Pins
    grader: Grader | None

    def draft(self, loaded: LoadedTask) -> Draft:
        """Return the draft of one task. What no option sets, its competition sets."""
        request = PublishRequest(
            NOBODY,
            self.name,
            self.gpus,
            self.deadline,
            self.endless,
            pins=self.pins,
            strict=loaded.strict,
            grader=self.grader,
        )
        if loaded.problem is not None:
            request = request.of_entry(loaded.problem)
            request = replace(request, name=self.name or request.name)
        return Draft(loaded.bundle, loaded.task, request, loaded.grading, loaded.competition)


def publish(
    ctx: typer.Context,
    paths: TaskPaths,
    *,
    gpu: Gpus = None,
    deadline: Annotated[
        str | None, typer.Option(help="YYYY-MM-DD[ HH:MM][ zone]; default zone: UTC")
    ] = None,
    endless: Annotated[
        bool, typer.Option("--no-deadline", help="Remove the board's deadline")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Board name (default: the task name)")] = None,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Publish without running the task's solutions")
    ] = False,
    pool: Pools = None,
    grader: GraderOption = None,
    root: Root = None,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Check tasks by running their solutions, then open or update their boards."""
    line = command_line(ctx)
    until = None if deadline is None else parse_deadline(deadline)
    loaded = load_tasks(line, paths, root, grader)
    if name is not None and len(loaded) > 1:
        raise UserError("usage", "--name works only with a single task")
    options = _PublishOptions(
        name, tuple(gpu or ()), until, endless, unchecked, parse_pins(pool or ()), grader
    )
    drafts = asyncio.run(_publish(line, Where(data, server, actor), loaded, options))
    if as_json:
        line.write_json([published_json(each) for each in drafts])
        return
    for each in drafts:
        _print_published(line, each)
    for competition in dict.fromkeys(each.competition for each in loaded if each.competition):
        line.say(f"next: {program()} competition show {shlex.quote(competition.name)}")


async def _publish(
    line: CommandLine, where: Where, loaded: Sequence[LoadedTask], options: _PublishOptions
) -> Sequence[PublishedDraft]:
    drafts = [options.draft(each) for each in loaded]
    async with line.client_for_person(where) as client:
        return await client.publish(drafts, line.say, unchecked=options.unchecked)


def _print_published(line: CommandLine, draft: PublishedDraft) -> None:
    board, published = draft.published.board, draft.published
    until = "no deadline" if board.deadline is None else f"until {show_deadline(board.deadline)}"
    version = f"task version {published.version}"
    if published.note:
        version += f" ({published.note})"
    words = f"{board.name} on {', '.join(board.gpus)}: {published.change}, {version}, {until}"
    if board.pins:
        words += f", timed only by {show_pins(board.pins)}"
    if draft.grading:
        line.write(f"{board.name}: {draft.grading}")
    line.write(words)
    for report in draft.reports:
        if not report.was_run:
            line.say(f"{board.name}: not run on {report.gpu}: {report.obstacle}")
    found = [each for report in draft.reports for each in report.findings]
    for each in dict.fromkeys(each for each in found if each.level is Level.WARNING):
        line.say(f"warning: {board.name}: {each.file}: {each.message}")


def pack(
    ctx: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Task folder, or a competition YAML")
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="ZIP", help="Output file, overwritten if it exists (default: NAME.zip)"
        ),
    ] = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Pack a task or a competition into one zip, including shared files outside its folder."""
    line = command_line(ctx)
    file, packed = _packed(line, path, root, out)
    try:
        file.write_bytes(packed)
    except OSError as error:
        raise UserError("cannot-write", f"{file}: cannot be written ({error.strerror})") from error
    files = sorted(read_files(packed))
    publish_command = f"podium task publish {path if path.is_file() else file}"
    kind = "competition" if path.is_file() else "task"
    words = (
        f"{file}: {len(files)} files, {len(packed):,} bytes; next: {publish_command}, or upload "
        f"the zip as a {kind} in the browser or on Discord"
    )
    line.answer(words, {"zip": str(file), "files": files}, as_json=as_json)


def _packed(
    line: CommandLine, path: Path, root: Path | None, out: Path | None
) -> tuple[Path, bytes]:
    """Return the path and the content of a zip; UserError if its recipient would refuse it."""
    if path.is_file() and path.name != TASK_FILE:
        packed = pack_competition(line, path, root)
        return Path(f"{path.stem}.zip") if out is None else out, packed
    bundle = line.installation.read_task(path, root)
    file = Path(f"{bundle.name}.zip") if out is None else out
    packed = write_zip(bundle)
    parse_task(read_zip(packed, name=file.stem))
    return file, packed


def new(
    ctx: typer.Context,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Task folder; a plain name is created under tasks/")
    ],
    *,
    into: Annotated[Path | None, typer.Option(help="Parent folder of DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a working example task to start from."""
    line = command_line(ctx)
    default = Path() if "/" in directory else _DEFAULT_FOLDER
    folder = (default if into is None else into) / directory
    files = scaffold(folder.name)
    _write(folder, files)
    words = f"{folder}: {len(files)} files; next: podium task check {folder}"
    line.answer(words, {"folder": str(folder), "files": sorted(files)}, as_json=as_json)


def import_(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="kernelbench", help="Problem set to import")],
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Checkout of the problem set, or one of its level folders"
        ),
    ],
    *,
    into: Annotated[Path, typer.Option(help="Output folder, which is created")] = _DEFAULT_FOLDER
    / "kernelbench",
    level: Annotated[
        list[int] | None, typer.Option(help="Import only this level; can be repeated")
    ] = None,
    precision: Annotated[
        str, typer.Option(help=f"Precision of inputs and weights: {', '.join(PRECISIONS)}")
    ] = PRECISIONS[0],
    as_json: AsJson = False,
) -> None:
    """Convert a problem set, such as KernelBench, into tasks."""
    line = command_line(ctx)
    if source != _KERNELBENCH:
        raise UserError("usage", f"unknown problem set {source!r}; use {_KERNELBENCH}")
    if precision not in PRECISIONS:
        raise UserError(
            "usage", f"unknown --precision {precision!r}; use one of {', '.join(PRECISIONS)}"
        )
    files = problem_tasks(read_problems(directory, level or ()), precision)
    names = sorted({path.partition("/")[0] for path in files})
    _write(into, files)
    words = f"{into}: {len(names)} tasks; next: podium task publish {into}"
    line.answer(words, {"folder": str(into), "tasks": names}, as_json=as_json)


def _write(folder: Path, files: dict[str, str]) -> None:
    """Create the folder with all files, or leave nothing behind."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError("task-exists", f"{folder} already exists; choose another name") from None
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> UserError:
    return UserError(
        "cannot-write",
        f"{folder}: cannot be created ({error.strerror}); choose another with --into",
    )

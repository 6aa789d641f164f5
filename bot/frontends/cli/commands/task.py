"""`podium task`: check, publish and scaffold tasks."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.deadline import parse_deadline
from bot.domain.errors import UserError
from bot.domain.scaffold import scaffold
from bot.domain.task_file import parse_task
from bot.domain.task_report import Level, TaskReport
from bot.frontends.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    actor_name,
    command_line,
)
from bot.frontends.cli.draw import draw
from bot.frontends.cli.failures import ExitCode
from bot.frontends.cli.shapes import dumps
from bot.reports.blocks import Report, Text, Tone
from bot.services.check_task import check_task
from bot.services.publish import Published, PublishRequest
from bot.services.publish import publish as put

Places = Annotated[list[Path], typer.Argument(help="Folders or zips of tasks, or folders of them")]
Gpus = Annotated[list[str] | None, typer.Option("--gpu", help="GPU type; may be repeated")]
_TONES = {Level.ERROR: Tone.BAD, Level.WARNING: Tone.PLAIN, Level.INFO: Tone.QUIET}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Check, publish and scaffold tasks.", no_args_is_help=True)
    group.command()(check)
    group.command()(publish)
    group.command()(new)
    app.add_typer(group, name="task")


def check(
    ctx: typer.Context,
    places: Places,
    *,
    gpu: Annotated[str | None, typer.Option(help="Else the first type that is here")] = None,
    as_json: AsJson = False,
) -> int:
    """Lint tasks and run their own solutions: exit code 1 when one has an error."""
    line = command_line(ctx)
    reports = asyncio.run(_check(line, _tasks(line, places), gpu))
    if as_json:
        line.out.out(dumps([_report_json(each) for each in reports]), highlight=False)
    else:
        for report in reports:
            draw(_drawn(report), line.out)
    return ExitCode.PASSED if all(report.ok for report in reports) else ExitCode.VERDICT


async def _check(
    line: CommandLine, places: Sequence[Path], gpu: str | None
) -> tuple[TaskReport, ...]:
    async with line.installation.runners() as runners:
        runner = runners[0]
        where = gpu or next(iter((await runner.capabilities()).gpus))
        reports = []
        for place in places:
            line.say(f"checking {place} on {where}")
            bundle = line.installation.read_task(place)
            reports.append(await check_task(runner, bundle, parse_task(bundle), where))
    return tuple(reports)


def publish(
    ctx: typer.Context,
    places: Places,
    *,
    gpu: Gpus = None,
    deadline: Annotated[str | None, typer.Option(help="YYYY-MM-DD[ HH:MM][ zone]")] = None,
    name: Annotated[str | None, typer.Option(help="The board's name, else the task's")] = None,
    actor: Actor = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Open a board for each task, or give its board the task's new version."""
    line = command_line(ctx)
    found = _tasks(line, places)
    if name is not None and len(found) > 1:
        raise UserError("usage", "--name is for one task, not for several")
    orders = _Orders(line, tuple(gpu or ()), deadline, name)
    published = asyncio.run(orders.publish(data, actor_name(actor), found))
    if as_json:
        line.out.out(dumps([_published_json(each) for each in published]), highlight=False)
        return
    for each in published:
        gpus = ", ".join(each.board.gpus)
        words = f"{each.board.name} on {gpus}: {each.change}, task version {each.version}"
        line.out.out(words, highlight=False)


class _Orders:
    """What is to become of each task."""

    def __init__(
        self, line: CommandLine, gpus: tuple[str, ...], deadline: str | None, name: str | None
    ) -> None:
        self._line = line
        self._gpus = gpus
        self._deadline = None if deadline is None else parse_deadline(deadline)
        self._name = name

    async def publish(
        self, data: Path | None, actor: str, places: Sequence[Path]
    ) -> tuple[Published, ...]:
        async with self._line.installation.at(data).open() as podium:
            person = await podium.store.people.ensure(f"local:{actor}", actor)
            published = []
            for place in places:
                task = parse_task(self._line.installation.read_task(place))
                board = await podium.store.boards.find(self._name or task.name)
                gpus = self._gpus
                if not gpus and not task.gpus and board is None:
                    gpus = await self._gpus_here()
                request = PublishRequest(person.id, task, self._name, gpus, self._deadline)
                published.append(await put(podium.store, podium.clock, request))
        return tuple(published)

    async def _gpus_here(self) -> tuple[str, ...]:
        async with self._line.installation.runners() as runners:
            offers = [await runner.capabilities() for runner in runners]
        self._gpus = tuple(sorted({gpu for offer in offers for gpu in offer.gpus}))
        return self._gpus


def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits, - and _")],
    *,
    into: Annotated[Path, typer.Option(help="The folder in which the task's folder is made")] = (
        Path("tasks")
    ),
    as_json: AsJson = False,
) -> None:
    """Scaffold a task that already works, to be changed step by step."""
    line = command_line(ctx)
    files = scaffold(name)
    folder = into / name
    if folder.exists():
        raise UserError("task-exists", f"{folder} is there already; choose another name")
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if as_json:
        line.out.out(dumps({"folder": str(folder), "files": sorted(files)}), highlight=False)
    else:
        line.out.out(f"{folder}: {len(files)} files; next: podium task check {folder}")


def _tasks(line: CommandLine, places: Sequence[Path]) -> tuple[Path, ...]:
    """Zips and task folders as they are, other folders as the tasks in them."""
    found: list[Path] = []
    for place in places:
        found += line.installation.task_folders(place) or (place,)
    return tuple(found)


def _drawn(report: TaskReport) -> Report:
    blocks = tuple(
        Text(f"{finding.level:<8} {finding.file}: {finding.message}", _TONES[finding.level])
        for finding in report.findings
    )
    return Report(f"{report.task}: {'sound' if report.ok else 'to be mended'}", blocks)


def _report_json(report: TaskReport) -> dict[str, object]:
    findings = [
        {"level": each.level.value, "file": each.file, "message": each.message}
        for each in report.findings
    ]
    return {"task": report.task, "ok": report.ok, "findings": findings}


def _published_json(published: Published) -> dict[str, object]:
    return {
        "board": published.board.name,
        "gpus": list(published.board.gpus),
        "task_version": published.version,
        "change": published.change.value,
    }

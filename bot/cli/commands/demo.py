"""`podium demo`: the main workflow on this machine, with real kernels and checked results."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from bot.app.context import OpenPodium, RoundLimit, cap_rounds
from bot.app.installation import Installation
from bot.cli import demo_script
from bot.cli.context import AsJson, CommandLine, DataFolder, command_line, program, viewer_here
from bot.cli.errors import ExitCode
from bot.cli.follow import ProgressLines, follow_all
from bot.cli.json_output import standings_json
from bot.domain.accounts import DEMO, Person
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import BoardStandings
from bot.domain.publication import PublishRequest
from bot.domain.requirements import missing_for
from bot.domain.submission import SubmissionRequest
from bot.domain.tasks.bundle import Solution, solutions
from bot.domain.tasks.task_file import parse_task
from bot.reports.standings import standings_report
from bot.services.boards import DemoRemoval, demo_owner, remove_demo
from bot.services.publishing.publish import publish, validate_publish
from bot.services.standings import board_standings
from bot.services.submissions import fault_of, submit
from runners.contract.runner import Capabilities
from runners.contract.task import Mode, TaskDefinition

Tasks = Annotated[
    Path | None,
    typer.Option("--tasks", help="Folder of tasks (default: the example tasks)", metavar="DIR"),
]
Rounds = Annotated[int, typer.Option(min=2, max=30, help="Maximum number of timed rounds")]
Whole = Annotated[bool, typer.Option("--all", help="Use all tasks and all example kernels")]
Remove = Annotated[bool, typer.Option("--remove", help="Remove the demo's boards")]


@dataclass(frozen=True, slots=True)
class _DemoResult:
    leaderboards: tuple[BoardStandings, ...]
    judged: int
    faults: tuple[str, ...]
    noisy: tuple[str, ...]
    """Right results that are not ranked because the machine was too busy."""
    seconds: float
    example: Path
    """The file of a correct kernel, below its task's folder."""


@dataclass(frozen=True, slots=True)
class _Task:
    folder: Path
    definition: TaskDefinition
    solutions: tuple[Solution, ...]
    """Those that can be submitted and judged here."""

    @property
    def board(self) -> str:
        return f"{demo_script.PREFIX}{self.definition.name}"


def demo(
    ctx: typer.Context,
    *,
    tasks: Tasks = None,
    rounds: Rounds = 20,
    whole: Whole = False,
    remove: Remove = False,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> int:
    """Publish example tasks, judge example kernels and print the standings."""
    line = command_line(ctx)
    installation = line.installation.embedded_at(data or line.installation.data_dir)
    if remove:
        _print_removed(line, installation, asyncio.run(_remove(installation)))
        return ExitCode.PASSED
    tasks = tasks or installation.examples  # every machine can judge those
    if not installation.task_folders(tasks):
        raise UserError("no-tasks", f"{tasks}: no task found; name a folder with --tasks")
    demo_run = _DemoRun(line, installation, tasks, rounds, whole)
    result = asyncio.run(demo_run.run())
    if result.faults:
        line.say(f"the log is {installation.data_dir / 'podium.log'}")
    if as_json:
        bodies = [standings_json(each) for each in result.leaderboards]
        body = {
            "standings": bodies,
            "judged": result.judged,
            "faults": result.faults,
            "noisy": result.noisy,
        }
        line.write_json(body)
    else:
        _draw(line, result)
        for words in _next_steps(data, result.example):
            line.write(words)
    return ExitCode.VERDICT if result.faults else ExitCode.PASSED


async def _remove(installation: Installation) -> DemoRemoval:
    async with installation.open() as podium:
        return await remove_demo(podium.store)


@dataclass(frozen=True, slots=True)
class _DemoRun:
    line: CommandLine
    installation: Installation
    tasks: Path
    rounds: int
    whole: bool

    async def run(self) -> _DemoResult:
        """Run everything from the task folders to the standings."""
        self.line.say("starting the database and the runner")
        async with (
            self.installation.open(exclusive=True) as podium,
            self.installation.runners() as runners,
        ):
            people = await _people(podium)
            people_ids = frozenset(each.id for each in people.values())
            limit = RoundLimit(cap_rounds(Mode.RANKED, self.rounds), people_ids)
            async with self.installation.working(podium, runners, limit):
                offers = [await runner.capabilities() for runner in runners]
                tasks = await self._tasks(offers)
                entries = demo_script.choose([(each.board, each.solutions) for each in tasks])
                if not self.whole:
                    limits = {each.board: each.definition.ranked_timeout for each in tasks}
                    entries = demo_script.short_selection(entries, limits)
                await self._publish(podium, offers, tasks, {each.board for each in entries})
                began = time.monotonic()
                submitted = await self._submit(podium, entries, people)
                faults, noisy = await self._await_all(podium, submitted)
                seconds = time.monotonic() - began
                leaderboards = await self._standings(podium, entries)
        for leaderboard in leaderboards:
            faults += demo_script.wrong_standings(entries, people_ids, leaderboard, noisy)
        example = _example(tasks, entries, leaderboards)
        words = tuple(chain.from_iterable(noisy.values()))
        return _DemoResult(leaderboards, len(entries), faults, words, seconds, example)

    async def _tasks(self, offers: Sequence[Capabilities]) -> list[_Task]:
        """Return every task, with the solutions that can be submitted and judged here."""
        found = []
        for folder in self.installation.task_folders(self.tasks):
            bundle = self.installation.read_task(folder)
            usable = [
                each
                for each in solutions(bundle)
                if not any(missing_for(offer, each, gpu) for offer in offers for gpu in offer.gpus)
                and await fault_of(each.source) is None  # others are refused before they are judged
            ]
            found.append(_Task(folder, parse_task(bundle), tuple(usable)))
        return found

    async def _publish(
        self,
        podium: OpenPodium,
        offers: Sequence[Capabilities],
        tasks: Sequence[_Task],
        boards: set[str],
    ) -> None:
        """Publish these tasks for all GPU types of this machine; remove an earlier demo first."""
        gpus = tuple(sorted({gpu for offer in offers for gpu in offer.gpus}))
        owner = await demo_owner(podium.store)
        requests = [
            (PublishRequest(owner.id, each.board, gpus), each.definition)
            for each in tasks
            if each.board in boards
        ]
        for request, task in requests:
            await _require_free(podium, request, task)
        await remove_demo(podium.store)
        for request, task in requests:
            await publish(podium.store, podium.clock, request, task, served=gpus)
        self.line.say(f"published {len(requests)} tasks for {', '.join(gpus)}")

    async def _submit(
        self,
        podium: OpenPodium,
        entries: Sequence[demo_script.DemoSubmission],
        people: Mapping[str, Person],
    ) -> dict[SubmissionId, demo_script.DemoSubmission]:
        submitted = {}
        for entry in entries:
            board = await podium.store.boards.find(entry.board)
            request = SubmissionRequest(
                viewer=viewer_here(people[entry.person].id),
                file_name=entry.file_name,
                content=entry.source.encode(),
                mode=Mode.RANKED,
                board=entry.board,
                gpus=() if board is None else board.gpus,
            )
            submitted[(await submit(podium.store, podium.clock, request)).id] = entry
        self.line.say(
            f"{len(submitted)} kernels of {len({e.person for e in entries})} people queued"
        )
        return submitted

    async def _await_all(
        self, podium: OpenPodium, submitted: dict[SubmissionId, demo_script.DemoSubmission]
    ) -> tuple[tuple[str, ...], dict[demo_script.DemoSubmission, tuple[str, ...]]]:
        """Return the unexpected results, and those that are too noisy by submission, in words."""
        names = {
            number: f"{entry.board} {entry.person} {entry.file_name}"
            for number, entry in submitted.items()
        }
        with ProgressLines(self.line.err) as lines:
            ended = await follow_all(podium.store, names, lines)
        pairs = [(submitted[number], ended[number]) for number in submitted]
        faults = chain.from_iterable(demo_script.unexpected_results(*pair) for pair in pairs)
        noisy = {entry: demo_script.noisy_results(entry, status) for entry, status in pairs}
        return tuple(faults), {entry: words for entry, words in noisy.items() if words}

    async def _standings(
        self, podium: OpenPodium, entries: Sequence[demo_script.DemoSubmission]
    ) -> tuple[BoardStandings, ...]:
        names = dict.fromkeys(entry.board for entry in entries)
        found = [await board_standings(podium.store, viewer_here(), name) for name in names]
        return tuple(chain.from_iterable(found))


async def _people(podium: OpenPodium) -> dict[str, Person]:
    """Return the demo's people, distinct from this machine's users even with the same names."""
    ensure = podium.store.people.ensure
    return {name: await ensure(f"{DEMO}:{name.lower()}", name) for name in demo_script.PEOPLE}


async def _require_free(podium: OpenPodium, request: PublishRequest, task: TaskDefinition) -> None:
    try:
        await validate_publish(podium.store, podium.clock, request, task, served=request.gpus)
    except UserError as error:
        if error.code != "not-yours":
            raise
        words = (
            f"board {request.board_name(task)!r} already exists and was not made by the demo; "
            "use another data folder, such as --data demo-data"
        )
        raise UserError(error.code, words) from error


def _example(
    tasks: Sequence[_Task],
    entries: Sequence[demo_script.DemoSubmission],
    leaderboards: Sequence[BoardStandings],
) -> Path:
    """Return the file of a correct kernel on the board with the most of them."""
    most = max(leaderboards, key=lambda each: len(each.entries)).board.name
    folder = next(each.folder for each in tasks if each.board == most)
    name = next(entry.solution.name for entry in entries if entry.board == most)
    return folder / name


def _draw(line: CommandLine, result: _DemoResult) -> None:
    for leaderboard in result.leaderboards:
        line.draw(standings_report(leaderboard))
        line.write("")
    for fault in result.faults:
        line.say(f"WRONG: {fault}")
    for words in result.noisy:
        line.write(words)
    count = len(result.faults)
    verdict = f"{count} checks failed" if count else "each with the expected verdict"
    line.write(f"{result.judged} kernels judged in {result.seconds:.0f} s, {verdict}")


def _next_steps(data: Path | None, example: Path) -> list[str]:
    """Return the next commands to type in this folder."""
    podium = program()
    option = "" if data is None else f" --data {data}"
    up = f"{podium} up{option}"
    if Path("Makefile").is_file():
        up = f"make up ARGS='{option.strip()}'" if option else "make up"
    steps = {
        up: "shows these boards in your browser, where you can sign in and submit",
        f"{podium} judge {example.parents[2]} {example}": (
            "tests one kernel right now; replace it with your own file"
        ),
        f"{podium} demo --remove{option}": "removes the demo",
    }
    return ["", "Next:", *(f"  {step}\n      {words}" for step, words in steps.items())]


def _print_removed(line: CommandLine, installation: Installation, removed: DemoRemoval) -> None:
    if not removed.boards and not removed.kept:
        line.write(f"no demo found in {installation.data_dir}")
    if removed.boards:
        line.write(f"removed {', '.join(removed.boards)}")
    for name in removed.kept:
        line.write(f"{name} is kept, because others have submitted to it; delete it on its page")

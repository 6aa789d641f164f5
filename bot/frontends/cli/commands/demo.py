"""`podium demo`: the whole main job on this machine, with real kernels, checked at the end."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.requirements import missing_for
from bot.domain.solutions import Solution, solutions
from bot.domain.submission import SubmissionRequest
from bot.domain.task_file import parse_task
from bot.frontends.cli.context import AsJson, CommandLine, DataFolder, command_line, viewer_here
from bot.frontends.cli.demonstration import Entry, choose, misplaced, surprises
from bot.frontends.cli.draw import draw
from bot.frontends.cli.failures import ExitCode
from bot.frontends.cli.following import follow_all
from bot.frontends.cli.installation import Installation, OpenPodium
from bot.frontends.cli.progress import ProgressLines
from bot.frontends.cli.rounds import cap_rounds
from bot.frontends.cli.shapes import dumps, standings_json
from bot.reports.standings import standings_report
from bot.services.publish import PublishRequest, publish
from bot.services.standings import BoardStandings, standings
from bot.services.submit import submit
from runners.contract.runner import Capabilities
from runners.contract.task import Mode

EXAMPLES = Path("tasks/examples")
"""Tasks that any machine can judge."""
Tasks = Annotated[Path, typer.Option("--tasks", help="The folder of the tasks", metavar="DIR")]
Rounds = Annotated[int, typer.Option(min=2, max=15, help="Time at most so many rounds")]


@dataclass(frozen=True, slots=True)
class _Outcome:
    leaderboards: tuple[BoardStandings, ...]
    judged: int
    faults: tuple[str, ...]
    seconds: float


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    ctx: typer.Context,
    *,
    tasks: Tasks = EXAMPLES,
    rounds: Rounds = 5,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> int:
    """Publish every task, judge several people's kernels, print the standings."""
    line = command_line(ctx)
    if not line.installation.task_folders(tasks):
        raise UserError("no-tasks", f"{tasks}: no task in there; name a folder with --tasks")
    folder, outcome = data or _own_folder(), None
    demonstration = _Demonstration(line, line.installation.embedded_at(folder), tasks, rounds)
    try:
        outcome = asyncio.run(demonstration.run())
    finally:
        if data is None:
            _leave(line, folder, keep=outcome is None or bool(outcome.faults))
    if as_json:
        shapes = [standings_json(each) for each in outcome.leaderboards]
        shape = {"standings": shapes, "judged": outcome.judged, "faults": outcome.faults}
        line.out.out(dumps(shape), highlight=False)
    else:
        _draw(line, outcome)
    return ExitCode.VERDICT if outcome.faults else ExitCode.PASSED


def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="podium-demo-"))
    folder.chmod(0o711)  # the database's own account must reach its part of it
    return folder


def _leave(line: CommandLine, folder: Path, *, keep: bool) -> None:
    """The demo's own folder goes away, unless something in it may say what went wrong."""
    if keep:
        line.say(f"the demo's data and its log are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Demonstration:
    line: CommandLine
    installation: Installation
    tasks: Path
    rounds: int

    async def run(self) -> _Outcome:
        """Everything from the tasks' folders to the standings."""
        began = time.monotonic()
        self.line.say("starting the database and the runner")
        policy = cap_rounds(Mode.RANKED, self.rounds)
        async with (
            self.installation.open(exclusive=True) as podium,
            self.installation.runners() as runners,
            self.installation.working(podium, runners, policy),
        ):
            offers = [await runner.capabilities() for runner in runners]
            entries = choose(await self._publish(podium, offers))
            held = await self._hand_in(podium, entries)
            faults = await self._await_all(podium, held)
            leaderboards = await self._standings(podium, [entry.board for entry in entries])
        for leaderboard in leaderboards:
            faults += misplaced(entries, leaderboard)
        return _Outcome(leaderboards, len(entries), faults, time.monotonic() - began)

    async def _publish(
        self, podium: OpenPodium, offers: Sequence[Capabilities]
    ) -> list[tuple[str, list[Solution]]]:
        """Put every task on a board of all GPU types here; gives what can run on each."""
        folders = self.installation.task_folders(self.tasks)
        gpus = tuple(sorted({gpu for offer in offers for gpu in offer.gpus}))
        owner = await podium.store.people.ensure("local:podium", "podium")
        boards = []
        for folder in folders:
            bundle = self.installation.read_task(folder)
            request = PublishRequest(owner.id, parse_task(bundle), gpus=gpus)
            published = await publish(podium.store, podium.clock, request)
            fit = [
                each
                for each in solutions(bundle)
                if not any(missing_for(offer, each, gpu) for offer in offers for gpu in offer.gpus)
            ]
            boards.append((published.board.name, fit))
        self.line.say(f"published {len(boards)} tasks for {', '.join(gpus)}")
        return boards

    async def _hand_in(
        self, podium: OpenPodium, entries: Sequence[Entry]
    ) -> dict[SubmissionId, Entry]:
        held = {}
        for entry in entries:
            person = await podium.store.people.ensure(f"local:{entry.person.lower()}", entry.person)
            request = SubmissionRequest(
                viewer=viewer_here(person.id),
                file_name=entry.file_name,
                content=entry.solution.source.encode(),
                mode=Mode.RANKED,
                board=entry.board,
                gpus=(await self._gpus(podium, entry.board)),
            )
            held[(await submit(podium.store, podium.clock, request)).id] = entry
        self.line.say(f"{len(held)} kernels of {len({e.person for e in entries})} people queued")
        return held

    async def _gpus(self, podium: OpenPodium, board: str) -> tuple[str, ...]:
        found = await podium.store.boards.find(board)
        return () if found is None else found.gpus

    async def _await_all(
        self, podium: OpenPodium, held: dict[SubmissionId, Entry]
    ) -> tuple[str, ...]:
        names = {
            number: f"{entry.board} {entry.person} {entry.file_name}"
            for number, entry in held.items()
        }
        with ProgressLines(self.line.err) as lines:
            ended = await follow_all(podium.store, names, lines)
        return tuple(fault for number in held for fault in surprises(held[number], ended[number]))

    async def _standings(
        self, podium: OpenPodium, boards: Sequence[str]
    ) -> tuple[BoardStandings, ...]:
        names = dict.fromkeys(boards)
        found = [await standings(podium.store, viewer_here(), name) for name in names]
        return tuple(chain.from_iterable(found))


def _draw(line: CommandLine, outcome: _Outcome) -> None:
    for leaderboard in outcome.leaderboards:
        draw(standings_report(leaderboard), line.out)
        line.out.out("", highlight=False)
    for fault in outcome.faults:
        line.say(f"WRONG: {fault}")
    verdict = f"{len(outcome.faults)} things went wrong" if outcome.faults else "as each must be"
    line.out.out(
        f"{outcome.judged} kernels judged in {outcome.seconds:.0f} s, {verdict}", highlight=False
    )

"""The submissions of a run and the people who hand them in while the machine is under fire."""

import asyncio
import random
from dataclasses import dataclass

from bot.app.context import SystemClock
from bot.domain.accounts import Person
from bot.domain.board import Viewer
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.publication import PublishRequest
from bot.domain.submission import Submission, SubmissionRequest
from bot.domain.tasks.bundle import Solution, solutions
from bot.domain.tasks.lint import python_fault
from bot.domain.tasks.task_file import parse_task
from bot.ports import Store
from bot.services.publishing.publish import publish
from bot.services.submissions import submit
from bot.store.task_folders import read_folder
from runners.contract.evaluation import CPU
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Verdict
from tests.architecture.tree import ROOT

IDENTITY = ROOT / "tasks" / "examples" / "identity"
REAL, FAKE = "identity", "fake"
ALPHA, BETA = "T4", "L4"
PEOPLE = ("ada", "grace", "katherine", "dorothy", "mary")
RETRY_S = 0.2
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Order:
    """One submission to be made; its file name is unique, so that it can be found again."""

    file_name: str
    person: str
    board: str
    source: str
    mode: Mode
    gpus: tuple[str, ...]
    verdict: Verdict
    time_us: float | None = None
    """What the fake runner measures; None where the time is real."""


def orders(seed: int, total: int, real: int) -> tuple[Order, ...]:
    """So many orders, the real ones spread evenly among them."""
    dice = random.Random(seed)  # noqa: S311 - test data, no secret
    every = total // real
    whole = [each for each in solutions(read_folder(IDENTITY)) if not each.needs]
    kernels = [each for each in whole if python_fault(each.source) is None]  # else no door takes it
    quick = [each for each in kernels if each.expect is not Verdict.TIMED_OUT]
    slow = [each for each in kernels if each.expect is Verdict.TIMED_OUT]
    shelf = slow + [quick[number % len(quick)] for number in range(real - len(slow))]
    made: list[Order] = []
    for number in range(total):
        name, person = f"k{number:04}.py", PEOPLE[number % len(PEOPLE)]
        if number % every == 0 and shelf:
            made.append(_real(name, person, shelf.pop()))
        else:
            made.append(_fake(name, person, dice))
    return tuple(made)


def _real(name: str, person: str, kernel: Solution) -> Order:
    mode = Mode.RANKED if kernel.expect is Verdict.PASSED else Mode.TEST
    return Order(name, person, REAL, kernel.source, mode, (CPU,), kernel.expect)


def _fake(name: str, person: str, dice: random.Random) -> Order:
    verdict = dice.choice((Verdict.PASSED, Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.CRASHED))
    mode = dice.choice((Mode.RANKED, Mode.RANKED, Mode.TEST))
    gpus = dice.choice(((ALPHA,), (ALPHA,), (BETA,), (ALPHA, BETA)))
    time_us = dice.randint(1, 1000)
    seconds = dice.choice((0.05, 0.2, 0.5, 1.5))
    source = f"# {name}\n# fake: verdict={verdict} time_us={time_us} seconds={seconds}\n"
    return Order(name, person, FAKE, source, mode, gpus, verdict, time_us)


async def open_boards(store: Store) -> dict[str, Person]:
    """Publish a board for real kernels and one for the fake runner; gives the people by name."""
    people = {name: await store.people.ensure(f"local:{name}", name) for name in PEOPLE}
    task = parse_task(read_folder(IDENTITY))
    benchmarks = (Workload(args={"size": 4096, "seed": 1}),)
    small = task.model_copy(update={"benchmarks": benchmarks, "ranked_timeout": 6})
    editor = people[PEOPLE[0]].id
    for name, gpus in ((REAL, (CPU,)), (FAKE, (ALPHA, BETA))):
        await publish(store, _CLOCK, PublishRequest(editor, name, gpus), small)
    return people


async def hand_in(
    store: Store, people: dict[str, Person], mine: tuple[Order, ...], pause_s: float
) -> dict[str, SubmissionId]:
    """One person's orders, one after the other, each tried until it is known to be stored."""
    receipts: dict[str, SubmissionId] = {}
    for order in mine:
        receipts[order.file_name] = (await _insist(store, people[order.person], order)).id
        await asyncio.sleep(pause_s)
    return receipts


async def _insist(store: Store, person: Person, order: Order) -> Submission:
    """An answer that was lost may hide a stored submission: look before trying again."""
    doubtful = False
    while True:
        try:
            if doubtful and (stored := await _stored(store, person, order)) is not None:
                return stored
            return await submit(store, _CLOCK, _request(person, order))
        except StoreError:
            doubtful = True
        await asyncio.sleep(RETRY_S)


async def _stored(store: Store, person: Person, order: Order) -> Submission | None:
    newest = await store.submissions.history(person.id, limit=5)
    return next((each for each in newest if each.file_name == order.file_name), None)


def _request(person: Person, order: Order) -> SubmissionRequest:
    return SubmissionRequest(
        viewer=Viewer(person.id),
        file_name=order.file_name,
        content=order.source.encode(),
        mode=order.mode,
        board=order.board,
        gpus=order.gpus,
    )

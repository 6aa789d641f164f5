"""Takes a request in: stores it as a submission to the house's board, with one job."""

import asyncio

from bot.domain import acceptance
from bot.domain.access import Access, SourceVisibility, Visibility
from bot.domain.board import HIDDEN, Board, NewBoard
from bot.domain.errors import UserError, unknown_name
from bot.domain.evaluation_server.record import with_record
from bot.domain.evaluation_server.request import Request, kernels_of, require_limits
from bot.domain.evaluation_server.translation import TASK, order_of
from bot.domain.ids import PersonId
from bot.domain.job import PRIORITIES
from bot.domain.person import HOUSE
from bot.domain.requirements import in_service, least_missing, missing
from bot.domain.submission import NewSubmission, Submission
from bot.domain.task_file import MAX_TASK, digest
from bot.ports import Clock, Store
from bot.services.admit import admit
from bot.services.evaluation_server.follow import margin_s
from runners.contract.evaluation import CPU
from runners.contract.gpus import spelled
from runners.contract.runner import Capabilities
from runners.contract.task import PYTHON, Mode, TaskDefinition

BOARD = f"{HIDDEN}eval"
PRIORITY = PRIORITIES[Mode.BENCHMARK]
"""Somebody waits for the answer and hangs up: before ranked runs, and after quick tests."""
_NO_TASK = TaskDefinition(
    name=TASK, lang=PYTHON, description="Each request brings a task of its own.", files={}
)
_NAME = "Podium"


class NoRunnerError(Exception):
    """No runner that lives can serve a request; the message says what they lack."""

    def __init__(self, message: str, *, any_there: bool) -> None:
        super().__init__(message)
        self.any_there = any_there
        """Whether there are runners at all: where there are none, one may be about to come."""


async def accept(store: Store, clock: Clock, person: PersonId, request: Request) -> Submission:
    """Store a request with its job; UserError says what to change, NoRunnerError what is missing.

    It runs on the GPU type that it names, else on the first that any runner offers for it.
    """
    # All of it is written out, while others want their answers.
    task, source, mode = await asyncio.to_thread(_order, request)
    gpu = _choose(await _offers(store), task, request.gpu)
    board = await houses_board(store)
    await admit(store, clock, person, board=board, mode=mode)
    new = NewSubmission(
        person=person,
        board=board.id,
        task_version=board.task_version,
        file_name=task.submission_file,
        source=source,
        mode=mode,
        gpus=(gpu,),
        priority=PRIORITY,
    )
    return await store.requests.add(new, task, digest(task))


async def houses_board(store: Store) -> Board:
    """The board to which all requests go: no list has it, and nobody but an admin sees it."""
    board = await store.boards.find(BOARD)
    if board is not None:
        return board
    house = await store.people.ensure(HOUSE, _NAME)
    access = Access(Visibility.PRIVATE, source=SourceVisibility.NEVER)
    new = NewBoard(BOARD, (), None, house.id, access)
    try:
        return await store.boards.publish(new, _NO_TASK, digest(_NO_TASK))
    except UserError:  # another process was faster
        board = await store.boards.find(BOARD)
        if board is None:
            raise
        return board


def _order(request: Request) -> tuple[TaskDefinition, str, Mode]:
    """What is judged by which task, and how; UserError for what cannot be stored or run."""
    require_limits(request)
    texts = [_text(kernel.source_code) for kernel in kernels_of(request)]
    order = order_of(request, seconds=int(request.timeout - margin_s(request)))
    task = with_record(order.task, request)
    length = len(task.model_dump_json().encode())
    if length > MAX_TASK:
        raise UserError(
            "too-large",
            f"the request has {length:,} bytes as it is kept; at most {MAX_TASK:,} are taken, "
            "so have large tensors drawn by an init",
        )
    return task, texts[-1], order.mode


def _text(source: str) -> str:
    return acceptance.source_text(source.encode("utf-8", "surrogatepass"))


async def _offers(store: Store) -> list[Capabilities]:
    return [offer for each in await store.workers.alive() for offer in each.offers.values()]


def _choose(offers: list[Capabilities], task: TaskDefinition, wanted: str | None) -> str:
    there = in_service(offers)
    if not there:
        raise NoRunnerError("no runner is there", any_there=False)
    chosen = None if wanted is None else spelled(wanted, there)
    if wanted is not None and chosen is None:
        raise unknown_name("gpu", wanted, there)
    among = there if chosen is None else (chosen,)
    able = [gpu for gpu in among if any(not missing(each, task, gpu) for each in offers)]
    if not able:
        lacks = min((least_missing(offers, task, gpu) for gpu in among), key=len)
        words = f"no runner can serve this kernel: missing {', '.join(lacks)}"
        if all(gpu == CPU for gpu in there):
            words += "; start a worker on a machine with a GPU"
        raise NoRunnerError(words, any_there=True)
    return min(able, key=lambda gpu: (gpu == CPU, gpu))

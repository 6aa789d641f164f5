"""Publishes a task on a board of a remote Podium, which checks it first."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote

from bot.domain.api.boards import BoardAnswer
from bot.domain.api.publishing import CheckAnswer, CheckProblem, CheckState, PublishedAnswer
from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.publication import Draft, PublishChange, Published, PublishRequest, Released
from bot.domain.tasks.bundle import write_zip
from bot.domain.tasks.lint import TaskReport
from bot.remote.client.decode import board_of
from bot.remote.client.requests import BUSY, PATIENCE_S, ApiClient, Outage, OutcomeUnknownError, Say
from runners.contract.runner import RunnerError

LOOK_S = 0.5
"""Seconds between two polls of a check."""
_ENDED = frozenset({CheckState.PUBLISHED, CheckState.REFUSED})


async def published(requests: ApiClient, draft: Draft, *, say: Say) -> Released:
    """Return the board published after the check there.

    UserError when it must not be published, with the same message as on this machine; RunnerError
    when a runner failed, not the task.
    """
    check = await _handed_in(requests, draft)
    async with _parting_words(requests, check, say):
        check = await _followed(requests, check, say)
    if check.problem is not None:
        raise _error(requests, check.problem)
    if check.published is None or check.published.board is None:
        raise UserError("board-gone", f"leaderboard {check.name!r} was deleted meanwhile")
    with requests.understood():
        return _released(check, check.published)


async def _handed_in(requests: ApiClient, draft: Draft) -> CheckAnswer:
    try:
        return await _upload(requests, draft)
    except OutcomeUnknownError as error:
        again = "give the same command again, which publishes nothing twice"
        words = f"{error.lost}; whether the task was taken in is not known: {again}"
        raise SetupError(words) from error


async def _upload(requests: ApiClient, draft: Draft) -> CheckAnswer:
    wanted, bundle = draft.request, draft.bundle
    data = await asyncio.to_thread(write_zip, bundle)
    file = "task_zip", f"{bundle.name or bundle.root or draft.task.name}.zip", data
    board = f"leaderboards/{quote(draft.board_name, safe='')}"
    try:
        await requests.get(board, BoardAnswer)
    except UserError as error:
        if error.code != "unknown-board":
            raise
        named = {"name": draft.board_name}
        return await requests.upload("leaderboards", CheckAnswer, file, _fields(wanted) | named)
    return await requests.upload(f"{board}/task", CheckAnswer, file, _fields(wanted))


def _fields(wanted: PublishRequest) -> dict[str, str | Sequence[str]]:
    found: dict[str, str | Sequence[str]] = {"gpus": list(wanted.gpus)}
    if wanted.pins:
        found["pools"] = [f"{gpu}={pool}" for gpu, pool in wanted.pins]
    if wanted.deadline is not None:
        found["deadline"] = wanted.deadline.isoformat()
    if wanted.endless:
        found["endless"] = "true"
    if not wanted.strict:
        found["lenient"] = "true"
    return found


async def _followed(requests: ApiClient, check: CheckAnswer, say: Say) -> CheckAnswer:
    """Return the check once it has ended; retry while the server is unavailable."""
    outage = Outage(requests.url, say, PATIENCE_S)
    told: tuple[str, ...] = ()
    while True:
        for words in check.begun[len(told) :]:
            say(words)
        told = check.begun
        if check.state in _ENDED:
            return check
        await asyncio.sleep(LOOK_S)
        try:
            check = await requests.get(f"checks/{check.id}", CheckAnswer)
        except StoreError as error:
            await outage.wait(error)
        except UserError as error:
            if error.code != BUSY:
                raise
            await outage.wait(StoreError(error.message))
        else:
            outage.over()


@asynccontextmanager
async def _parting_words(requests: ApiClient, check: CheckAnswer, say: Say) -> AsyncIterator[None]:
    try:
        yield
    except (asyncio.CancelledError, StoreError):
        again = "the same command again tells what became of it"
        say(f"the check of {check.name} goes on at {requests.url}; {again}")
        raise


def _error(requests: ApiClient, problem: CheckProblem) -> Exception:
    """Return the error that this machine would have raised."""
    match problem.code:
        case "runner":
            return RunnerError(problem.detail)
        case "incident":
            return SetupError(f"{requests.url}: {problem.detail}")
        case _:
            return UserError(problem.code, problem.detail)


def _released(check: CheckAnswer, answer: PublishedAnswer) -> Released:
    if answer.board is None:
        raise ValueError("a published board that is none")
    reports = tuple(TaskReport(check.name, each.gpu, (), each.obstacle) for each in answer.checked)
    board, change = board_of(answer.board), PublishChange(answer.change)
    return Released(Published(board, answer.task_version, change, answer.version_note), reports)

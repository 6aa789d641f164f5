"""Publishes tasks and competitions at a remote Podium, which checks them first."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from urllib.parse import quote

from bot.domain.api import boards as api
from bot.domain.api import publishing
from bot.domain.board import Pins, SeasonRules
from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.publication import Draft, PublishChange, Published, PublishedDraft, PublishRequest
from bot.domain.tasks.bundle import write_zip
from bot.domain.tasks.competition import CompetitionDefinition, CompetitionEntry, write_competition
from bot.domain.tasks.lint import TaskReport
from bot.remote.client import decode, requests
from runners.contract.runner import RunnerError

CHECK_POLL_S = 0.5
"""Seconds between two polls of a check."""
_ENDED = frozenset({publishing.CheckState.PUBLISHED, publishing.CheckState.REFUSED})


async def publish(
    client: requests.ApiClient,
    competition: CompetitionDefinition | None,
    drafts: Sequence[Draft],
    *,
    say: requests.Say,
) -> list[PublishedDraft]:
    """Publish at the server, after its checks; return the boards.

    The boards of a competition are checked together, other boards one after the other.
    UserError when one must not be published, with the same message as on this machine; RunnerError
    when a runner failed, not the task.
    """
    if competition is None:
        return [await _publish_task(client, each, say=say) for each in drafts]
    check = await _checked(client, await _upload_competition(client, competition, drafts), say)
    with client.decoding():
        return [_published_draft(check, each) for each in check.boards]


async def _upload_competition(
    client: requests.ApiClient, competition: CompetitionDefinition, drafts: Sequence[Draft]
) -> publishing.CheckAnswer:
    entries = tuple(
        CompetitionEntry(
            "",
            each.board_name,
            each.request.deadline,
            each.request.gpus,
            each.request.rules or SeasonRules(),
        )
        for each in drafts
    )
    definition, bundles = replace(competition, problems=entries), [each.bundle for each in drafts]
    data = await asyncio.to_thread(write_competition, definition, bundles)
    file, pins = ("competition_zip", "competition.zip", data), drafts[0].request.pins
    with _advice_on_lost_answer("the competition"):
        return await client.upload(
            "competitions", publishing.CheckAnswer, file, {"pools": _pools(pins)}
        )


async def _publish_task(
    client: requests.ApiClient, draft: Draft, *, say: requests.Say
) -> PublishedDraft:
    with _advice_on_lost_answer("the task"):
        check = await _upload(client, draft)
    check = await _checked(client, check, say)
    if check.published is None or check.published.board is None:
        raise UserError("board-gone", f"leaderboard {check.name!r} was deleted meanwhile")
    with client.decoding():
        return _published_draft(check, check.published)


async def _checked(
    client: requests.ApiClient, check: publishing.CheckAnswer, say: requests.Say
) -> publishing.CheckAnswer:
    """Return the check once it has passed; raise the error that this machine would have raised."""
    async with _advice_on_interrupt(client, check, say):
        check = await _follow_check(client, check, say)
    if check.problem is not None:
        raise _error(client, check.problem)
    return check


@contextmanager
def _advice_on_lost_answer(what: str) -> Iterator[None]:
    try:
        yield
    except requests.OutcomeUnknownError as error:
        again = "run the same command again; nothing is published twice"
        words = f"{error.lost}; {what} may have been accepted: {again}"
        raise SetupError(words) from error


async def _upload(client: requests.ApiClient, draft: Draft) -> publishing.CheckAnswer:
    request, bundle = draft.request, draft.bundle
    data = await asyncio.to_thread(write_zip, bundle)
    file = "task_zip", f"{bundle.name or bundle.root or draft.task.name}.zip", data
    board = f"leaderboards/{quote(draft.board_name, safe='')}"
    try:
        await client.get(board, api.BoardAnswer)
    except UserError as error:
        if error.code != "unknown-board":
            raise
        named = {"name": draft.board_name}
        return await client.upload(
            "leaderboards", publishing.CheckAnswer, file, _fields(request) | named
        )
    return await client.upload(f"{board}/task", publishing.CheckAnswer, file, _fields(request))


def _fields(request: PublishRequest) -> dict[str, str | Sequence[str]]:
    found: dict[str, str | Sequence[str]] = {"gpus": list(request.gpus)}
    if request.pins:
        found["pools"] = _pools(request.pins)
    if request.deadline is not None:
        found["deadline"] = request.deadline.isoformat()
    if request.endless:
        found["endless"] = "true"
    if not request.strict:
        found["lenient"] = "true"
    if request.grader is not None:
        found["grader"] = request.grader.value
    return found


def _pools(pins: Pins) -> list[str]:
    return [f"{gpu}={pool}" for gpu, pool in pins]


async def _follow_check(
    client: requests.ApiClient, check: publishing.CheckAnswer, say: requests.Say
) -> publishing.CheckAnswer:
    """Return the check once it has ended; retry while the server is unavailable."""
    outage = requests.Outage(client.url, say, requests.PATIENCE_S)
    shown: tuple[str, ...] = ()
    while True:
        for words in check.begun[len(shown) :]:
            say(words)
        shown = check.begun
        if check.state in _ENDED:
            return check
        await asyncio.sleep(CHECK_POLL_S)
        async with outage.waiting_out():
            check = await client.get(f"checks/{check.id}", publishing.CheckAnswer)


@asynccontextmanager
async def _advice_on_interrupt(
    client: requests.ApiClient, check: publishing.CheckAnswer, say: requests.Say
) -> AsyncIterator[None]:
    try:
        yield
    except (asyncio.CancelledError, StoreError):
        again = "run the same command again to see its result"
        say(f"the check of {check.name} continues at {client.url}; {again}")
        raise


def _error(client: requests.ApiClient, problem: publishing.CheckProblem) -> Exception:
    """Return the error that this machine would have raised."""
    match problem.code:
        case "runner":
            return RunnerError(problem.detail)
        case "incident":
            return SetupError(f"{client.url}: {problem.detail}")
        case _:
            return UserError(problem.code, problem.detail)


def _published_draft(
    check: publishing.CheckAnswer, answer: publishing.PublishedAnswer
) -> PublishedDraft:
    if answer.board is None:
        raise ValueError("the published board is missing")
    reports = tuple(TaskReport(check.name, each.gpu, (), each.obstacle) for each in answer.checked)
    board, change = decode.board_of(answer.board), PublishChange(answer.change)
    return PublishedDraft(
        Published(board, answer.task_version, change, answer.version_note),
        reports,
        answer.grading or check.grading,
    )

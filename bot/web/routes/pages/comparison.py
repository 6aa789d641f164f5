"""`/submissions/N/compare?with=M`: two submissions side by side, their times and their sources."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field

from bot.domain.accounts import Person, require_admin
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import ComparedSubmission, SubmissionComparison
from bot.domain.reference_times import OtherRun, OtherTimes
from bot.domain.submission import Submission, SubmissionState
from bot.reports.benchmarks import BenchmarkTable, benchmark_table
from bot.reports.comparison import names, times, why_no_diff
from bot.reports.difference import Colored, Difference, colored, difference
from bot.services import moderation
from bot.services.comparison import compare_sources, times_by_gpu
from bot.services.lookup import visible_submission
from bot.services.status import Source, source
from bot.web import auth, rendering, sessions
from bot.web.context import WebContext, context_of
from bot.web.markup import colored_lines
from runners.contract.verdict import VERDICT_WORDS, Verdict

router = APIRouter(prefix="/submissions")


class ComparisonParameters(BaseModel):
    """The query parameters of a comparison."""

    model_config = ConfigDict(extra="ignore")

    other: Annotated[str, Field(alias="with", max_length=20)]
    swap: bool = False


Number = Annotated[SubmissionId, Path(ge=-(1 << 62), lt=1 << 62)]
ComparisonQuery = Annotated[ComparisonParameters, Query()]
WAIT_S = 10.0
"""How long, in seconds, a comparison waits for earlier ones."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A compared submission with its submitter."""

    submission: Submission
    person: Person | None
    results: tuple[tuple[str, str, str], ...]
    """GPU type, result in words, and tone."""


@dataclass(frozen=True, slots=True)
class _RenderedDiff:
    """A comparison, and its diff if it can be shown."""

    comparison: SubmissionComparison
    difference: Difference | None = None
    text: Markup | None = None


@router.get("/{number}/compare")
async def comparison(
    request: Request, number: Number, viewer: auth.AnyViewer, query: ComparisonQuery
) -> Response:
    """Show the results of both, the older on the left, and where their sources differ."""
    context, other = context_of(request), _number_in(query.other)
    numbers = sorted((number, other), reverse=query.swap)
    sources, refusals = [], []
    for each in numbers:
        try:
            sources.append(await source(context.store, context.clock, viewer, each))
        except UserError as error:
            if error.code != "hidden-source" or not rendering.wants_page(request):
                raise
            refusals.append((each, error.message))
            found = await visible_submission(context.store, viewer, each)
            sources.append(Source(each, found.file_name, ""))
    swapped = rendering.query({"with": other, "swap": None if query.swap else "1"})
    values = await _values(context, number, sources, refusals)
    values["swapped"] = f"/submissions/{number}/compare?{swapped}"
    return await rendering.page(request, viewer, "comparison.html", values)


@router.post("/{number}/compare")
async def compare_on_record(
    request: Request, number: Number, submitted: sessions.SmallForm
) -> Response:
    """Compare any two sources for an admin: a look at each is recorded in the audit log."""
    require_admin(submitted.caller)
    context, fields = context_of(request), submitted.fields
    decision = moderation.Decision(submitted.caller.person, fields.reason)
    sources = [
        (await moderation.look(context.store, context.clock, decision, each)).source
        for each in sorted((number, _number_in(fields.text("with"))))
    ]
    values = await _values(context, number, sources)
    return await rendering.page(request, submitted.caller, "comparison.html", values)


async def _values(
    context: WebContext,
    number: SubmissionId,
    sources: Sequence[Source],
    refusals: Sequence[tuple[SubmissionId, str]] = (),
) -> dict[str, Any]:
    """Return what the page shows; without the sources if one is refused."""
    if refusals:
        rendered = _RenderedDiff(await compare_sources(context.store, *sources))
    else:
        rendered = await _compare_alone(context, sources)
    compared = rendered.comparison
    board = await context.store.boards.get(compared.first.submission.board)
    return {
        "title": " and ".join(names(compared)),
        "board": board,
        "number": number,
        "swapped": "",
        "sides": [
            await _compared_side(context, each) for each in (compared.first, compared.second)
        ],
        "times": list(times(compared)),
        "benchmarks": await _benchmarks(context, compared),
        "refusals": refusals,
        "words": why_no_diff(compared),
        "difference": rendered.difference,
        "drawn": rendered.text,
    }


async def _benchmarks(
    context: WebContext, compared: SubmissionComparison
) -> list[tuple[str, BenchmarkTable]]:
    """Return the second's time of each benchmark against the first's, by GPU type."""
    first, second = compared.first.submission, compared.second.submission
    if first.task_version != second.task_version or first.id == second.id:
        return []
    before = await times_by_gpu(context.store, first.id)
    tables = []
    for gpu, found in (await times_by_gpu(context.store, second.id)).items():
        timed = [(n, spec, value) for n, (spec, value) in enumerate(found.items(), start=1)]
        other = OtherRun("the other", before.get(gpu, {}), first.id)
        table = benchmark_table(timed, OtherTimes((other,)))
        tables += [(gpu, table)] if table.others else []
    return tables


async def _compare_alone(context: WebContext, sources: Sequence[Source]) -> _RenderedDiff:
    """Run one comparison at a time: each may keep the interpreter busy for up to 0.4 s."""
    colors = [await colored_lines(each.text, each.file_name) for each in sources]
    try:
        async with asyncio.timeout(WAIT_S):
            await context.comparison_lock.acquire()
    except TimeoutError as error:
        soon = "in a few seconds"
        moment = context.clock.now() + timedelta(seconds=WAIT_S)
        message = f"many people are comparing submissions right now; try again {soon}"
        raise UserError("rate-limit", message, {soon: moment}) from error
    try:
        compared = await compare_sources(context.store, *sources)
        if why_no_diff(compared) is not None:
            return _RenderedDiff(compared)
        return await asyncio.to_thread(_render_diff, compared, colors)
    finally:
        context.comparison_lock.release()


def _render_diff(
    compared: SubmissionComparison, colors: Sequence[Sequence[Colored]]
) -> _RenderedDiff:
    lines = colored(difference(compared.side_by_side), colors)
    text = rendering.render("parts/difference.html", {"it": lines, "names": _titles(compared)})
    return _RenderedDiff(compared, lines, Markup(text))  # noqa: S704 - the template has escaped it


def _titles(compared: SubmissionComparison) -> list[str]:
    sides = (compared.first.submission, compared.second.submission)
    return [f"#{each.id} {each.file_name}" for each in sides]


async def _compared_side(context: WebContext, side: ComparedSubmission) -> ComparedSide:
    submission = side.submission
    results = [(gpu, *_verdict_words(verdict)) for gpu, verdict in sorted(side.verdicts.items())]
    if submission.state is not SubmissionState.FINISHED:
        results += [
            (gpu, submission.state.value, "") for gpu in submission.gpus if gpu not in side.verdicts
        ]
    person = await context.store.people.get(submission.person)
    return ComparedSide(submission, person, tuple(results))


def _verdict_words(verdict: Verdict) -> tuple[str, str]:
    return VERDICT_WORDS[verdict], "good" if verdict is Verdict.PASSED else "bad"


def _number_in(text: str) -> SubmissionId:
    number = sessions.parse_number(text, 10**20)
    if number is None:
        raise UserError("bad-number", "name the other submission by its number, such as 17")
    return SubmissionId(number)

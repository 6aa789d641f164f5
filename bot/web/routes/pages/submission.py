"""`/submissions/N`: the report of a submission, its live progress, and its downloads."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import StoredFile
from bot.domain.status import JobStatus, SubmissionStatus
from bot.reports import history
from bot.reports.benchmarks import BenchmarkReport, benchmark_report
from bot.reports.blocks import Block, Text
from bot.reports.confirmations import confirmation_lines
from bot.reports.profiles import Profile, profiles
from bot.reports.standings import placement_lines, standing_line
from bot.reports.submission import archives, around_benchmarks, job_line, outcome
from bot.services import comparison, standings, status
from bot.services.comparison import other_times
from bot.web import auth, rendering, sessions
from bot.web.context import WebContext, context_of
from bot.web.markup import highlighted, statement
from bot.web.moderation import moderation_of
from runners.contract.verdict import VERDICT_WORDS

router = APIRouter(prefix="/submissions")
Number = Annotated[int, Path(ge=-(1 << 62), lt=1 << 62)]
Choices = tuple[str, list[tuple[SubmissionId, str]]]
"""A group's name, and each submission in it by number and label."""
_DOWNLOAD = {"Cache-Control": "private, no-store"}


@dataclass(frozen=True, slots=True)
class JobReport:
    """The result on one GPU type: the report's blocks, above and below the drawings."""

    job: JobStatus
    above: Sequence[Block] = ()
    below: Sequence[Block] = ()
    timed: BenchmarkReport | None = None
    profiles: tuple[Profile, ...] = ()


@router.get("/{number}")
async def submission(request: Request, number: Number, viewer: auth.AnyViewer) -> Response:
    """Show the report; while jobs run, a part of the page updates itself."""
    context, submission_id = context_of(request), SubmissionId(number)
    reading = await status.read_submission(context.store, context.clock, viewer, submission_id)
    person = await context.store.people.get(reading.submission.person)
    files = await status.read_files(context.store, context.clock, viewer, submission_id)
    values = {
        "title": f"Submission #{number}",
        "card": f"/submissions/{number}/card.png",
        "status": reading,
        "submission": reading.submission,
        "board": reading.board,
        "person": person,
        "moderation": await moderation_of(request, person, reading),
        "lines": _lines(reading),
        "outcome": outcome(reading),
        "verdict_words": set(VERDICT_WORDS.values()),
        "confirmations": list(confirmation_lines(reading)),
        "buttons": sessions.submission_buttons(await sessions.browser_of(request), reading),
        "note": await statement(reading.submission.note, "", ()) if reading.submission.note else "",
        "places": await _places(context, reading),
        "job_reports": [
            await _with_profiles(await _job_report(context, viewer, reading, each), files)
            for each in reading.jobs
        ],
        "files": await asyncio.to_thread(archives, submission_id, files),
        **await _source_values(context, viewer, reading),
    }
    return await rendering.page(request, viewer, "submission.html", values)


def _lines(reading: SubmissionStatus) -> list[Text]:
    """Return the progress of each job, and of its confirmation."""
    return [*map(job_line, reading.jobs), *confirmation_lines(reading)]


async def _source_values(
    context: WebContext, viewer: Viewer, reading: SubmissionStatus
) -> dict[str, Any]:
    """Return the source and what it can be compared with, or why it is hidden."""
    shown, hidden = await _source(context, viewer, reading)
    if shown is None:
        return {"code": None, "hidden": hidden, "choices": []}
    return {
        "code": await highlighted(shown.text, shown.file_name),
        "hidden": hidden,
        "choices": await _choices(context, viewer, reading.submission.id),
    }


async def _source(
    context: WebContext, viewer: Viewer, reading: SubmissionStatus
) -> tuple[status.Source | None, str]:
    """Return the source, or why this viewer may not see it."""
    try:
        return await status.source(context.store, context.clock, viewer, reading.submission.id), ""
    except UserError as error:
        if error.code != "hidden-source":
            raise
        return None, error.message


async def _job_report(
    context: WebContext, viewer: Viewer, reading: SubmissionStatus, job: JobStatus
) -> JobReport:
    if job.evaluation is None:
        return JobReport(job)
    report = JobReport(job, *around_benchmarks(job.evaluation, job.cost))
    if not any(each.measurement for each in job.evaluation.cases):
        return report
    found = await other_times(context.store, viewer, reading, job.job.gpu)
    return replace(report, timed=benchmark_report(job.evaluation, found))


async def _with_profiles(report: JobReport, files: Sequence[StoredFile]) -> JobReport:
    found = await asyncio.to_thread(profiles, files, report.job.job.gpu)
    return replace(report, profiles=found)


async def _places(context: WebContext, reading: SubmissionStatus) -> list[str]:
    if not reading.is_final:
        return []
    placements = await standings.placements(context.store, reading.submission.id)
    return [each.text for each in placement_lines(placements, reading)]


async def _choices(
    context: WebContext, viewer: Viewer, submission_id: SubmissionId
) -> list[Choices]:
    """Return what it can be compared with, in non-empty groups."""
    comparable = await comparison.comparable(context.store, context.clock, viewer, submission_id)
    groups = {
        "Other versions": [
            (each.submission.id, history.history_line(each)) for each in comparable.versions
        ],
        "Your own": [(each.submission.id, history.history_line(each)) for each in comparable.own],
        "The fastest": [(each.score.submission, standing_line(each)) for each in comparable.others],
    }
    return [(name, choices) for name, choices in groups.items() if choices]


@router.get("/{number}/events")
async def progress(request: Request, number: Number, viewer: auth.AnyViewer) -> StreamingResponse:
    """Stream the lines of the jobs after each change; a viewer's streams share one read."""
    context, submission_id = context_of(request), SubmissionId(number)
    await status.read_submission(context.store, context.clock, viewer, submission_id)

    async def part() -> rendering.Part:
        async def make() -> rendering.Part:
            found = await status.read_submission(
                context.store, context.clock, viewer, submission_id
            )
            values = {"lines": _lines(found), "outcome": outcome(found), "number": number}
            return rendering.render("parts/jobs.html", values), found.is_settled

        return await context.cache.get(("progress", number, viewer), rendering.TICK_S / 2, make)

    return rendering.live(context, part, lambda: auth.has_same_viewer(request, viewer))


@router.get("/{number}/source")
async def download(request: Request, number: Number, viewer: auth.AnyViewer) -> Response:
    """Return the source unchanged, as a download that the browser does not display."""
    context = context_of(request)
    source = await status.source(context.store, context.clock, viewer, SubmissionId(number))
    return _file(source.text.encode(), "text/plain; charset=utf-8")


@router.get("/{number}/files/{name}")
async def file(request: Request, number: Number, name: str, viewer: auth.AnyViewer) -> Response:
    """Return an archive of the profiler's reports."""
    context = context_of(request)
    found = await status.read_files(context.store, context.clock, viewer, SubmissionId(number))
    made = await asyncio.to_thread(archives, SubmissionId(number), found)
    for each in made:
        if each.name == name:
            return _file(each.data, "application/zip")
    raise UserError("unknown-file", f"submission {number} has no file of this name")


def _file(data: bytes, media_type: str) -> Response:
    headers = {**_DOWNLOAD, "Content-Disposition": "attachment"}
    return Response(data, media_type=media_type, headers=headers)

"""The progress of a submission as KernelBot's server-sent events: status, result, error."""

import asyncio
import base64
import hashlib
import io
import json
import zipfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

import anyio
import structlog

from bot.domain.accounts import Caller
from bot.domain.errors import StoreError, UserError
from bot.domain.records import StoredFile
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.submission import Submission
from bot.ports import Store
from bot.reports.submission import status_report
from bot.services import submissions
from bot.services.status import profile_files, unserved_in_words, watch
from bot.web.compat.kernelbot import boards, http, translate
from bot.web.context import WebContext
from runners.contract.evaluation import CaseKind, Environment, Evaluation, ProfileOptions
from runners.contract.task import Mode, TaskDefinition
from runners.contract.verdict import Verdict

_log = structlog.get_logger(__name__)

HEARTBEAT_S = 15.0
"""The longest time without an event, in seconds."""
POLL_S = 1.0
"""The shortest time between events, and the longest until a shutdown is noticed, in seconds."""
_CANCEL_S = 5.0
_UNAVAILABLE = "the service is unavailable; submission {} continues, so check it again later"


async def submission_events(
    context: WebContext, caller: Caller, submission: Submission, *, by_ncu: bool = False
) -> AsyncGenerator[bytes, None]:
    """Yield the events up to the end; cancel the submission if the client disconnects earlier."""
    ended = False
    try:
        async with aclosing(_events(context, submission, by_ncu=by_ncu)) as events:
            async for event in events:
                yield event
        ended = True
    finally:
        if not ended and not context.closing.begun:
            with anyio.move_on_after(_CANCEL_S, shield=True):
                await _cancel_unread(context, caller, submission)


async def _cancel_unread(context: WebContext, caller: Caller, submission: Submission) -> None:
    _log.info("a client disconnected", action="popcorn-hung-up", submission=submission.id)
    try:
        await submissions.cancel(context.store, caller, submission.id)
    except (StoreError, UserError) as error:
        _log.warning("not cancelled", action="popcorn-not-cancelled", error=str(error))


async def _events(
    context: WebContext, submission: Submission, *, by_ncu: bool
) -> AsyncGenerator[bytes, None]:
    clock = asyncio.get_running_loop().time
    begun, sent, sent_at = clock(), "", -HEARTBEAT_S
    last: SubmissionStatus | None = None
    try:
        async with aclosing(_readings(context, submission)) as readings:
            async for last in readings:
                message = "; ".join(translate.progress_of(job) for job in last.jobs)
                if not last.is_final and (message != sent or clock() - sent_at >= HEARTBEAT_S):
                    deadline = last.board.deadline
                    stated = "" if sent else f". {submission.consent.statement(deadline)}"
                    sent, sent_at = message, clock()
                    note = await unserved_note(context.store, submission) + stated
                    yield _status(message + note, clock() - begun)
        if last is not None and last.is_final:
            end = await last_event(context.store, last, by_ncu=by_ncu)
            yield _event(end.event, end.body)
            return
    except StoreError as error:
        _log.warning("a stream ended early", action="popcorn-broke-off", error=str(error))
    except UserError as error:  # its board was deleted
        yield _event("error", {"status": "error", "detail": error.message, "status_code": 404})
        return
    yield _event("error", _unavailable(submission))


async def unserved_note(store: Store, submission: Submission) -> str:
    """Return a note about an unfinished submission that no worker can judge; empty for others."""
    gpus = await unserved_in_words(store, submission.id)
    return f"; no connected worker offers {', '.join(gpus)}" if gpus else ""


async def _readings(
    context: WebContext, submission: Submission
) -> AsyncGenerator[SubmissionStatus, None]:
    """Yield the current state about once a second, until it is final or the server shuts down."""
    watching = watch(context.store, submission.id)
    pending: asyncio.Future[SubmissionStatus | None] | None = None
    last: SubmissionStatus | None = None
    try:
        while not context.closing.begun:
            if pending is None:
                pending = asyncio.ensure_future(anext(watching, None))
            if (await asyncio.wait({pending}, timeout=POLL_S))[0]:
                reading, pending = pending.result(), None
                last = reading or last
            if last is not None:
                yield last
                if last.is_final:
                    return
    finally:
        if pending is not None:
            pending.cancel()
            with suppress(asyncio.CancelledError):
                await pending


def _status(message: str, elapsed_s: float) -> bytes:
    body = {"status": "processing", "elapsed_time": round(elapsed_s, 1), "message": message}
    return _event("status", body)


def _unavailable(submission: Submission) -> dict[str, object]:
    return {"status": "error", "detail": _UNAVAILABLE.format(submission.id), "status_code": 503}


def _event(name: str, body: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()


_WHEN = (1980, 1, 1, 0, 0, 0)
"""A constant time stamp in archives, so that equal files give equal bytes."""
_FOLDER = "profile_data"
_DETAILS = f"{_FOLDER}/ncu-details.txt"
_REPORT = ".ncu-rep"
_NAMES = {".csv": "ncu-details.csv", _REPORT: f"profile{_REPORT}"}
"""popcorn-cli unpacks files with these names."""
_CRASH = 1


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last event: `result`, or `error` if nothing was judged."""

    event: str
    body: http.Json


@dataclass(frozen=True, slots=True)
class _JudgedJob:
    """A judged job, with what its result needs of its submission."""

    submission: Submission
    job: JobStatus
    evaluation: Evaluation
    files: Sequence[StoredFile]
    metadata: http.Json | None
    by_ncu: bool


async def last_event(store: Store, status: SubmissionStatus, *, by_ncu: bool = False) -> LastEvent:
    """Return the final event of a submission; with `by_ncu`, an error if `ncu` gave no report."""
    submission = status.submission
    files = await profile_files(store, submission)
    version = await store.boards.version(submission.task_version)
    profiled = submission.mode is Mode.PROFILE and version is not None
    metadata = metadata_of(submission, version.definition) if profiled and version else None
    results = [
        await asyncio.to_thread(
            _job_result,
            _JudgedJob(submission, job, job.evaluation, _of(job, files), metadata, by_ncu),
        )
        for job in status.jobs
        if job.evaluation is not None
    ]
    if not results:
        _, error = translate.state_of(status)
        return LastEvent("error", {"status": "error", "detail": error or "it was not judged"})
    reports = [translate.markdown(status_report(status))]
    return LastEvent("result", {"status": "success", "results": results, "reports": reports})


def metadata_of(submission: Submission, task: TaskDefinition) -> http.Json:
    """Return what was profiled, for the manifest that popcorn-cli writes."""
    requested = submission.profile or ProfileOptions()
    options = {
        "benchmark_index": requested.benchmark,
        "ncu_kernel_name": requested.kernel_name,
        "ncu_kernel_name_base": requested.kernel_name_base,
        "ncu_launch_count": requested.launch_count,
    }
    used = {name: value for name, value in options.items() if value is not None}
    config = {"task": task.model_dump(mode="json"), "profile_options": used}
    text = json.dumps(config, sort_keys=True).encode()
    return {
        "capture_options": used,
        "benchmark_specs": {
            str(number): boards.arguments(case)
            for number, case in enumerate(task.benchmarks)
            if requested.benchmark in {None, number}
        },
        "config_sha256": hashlib.sha256(text).hexdigest(),
    }


def _of(job: JobStatus, files: Sequence[StoredFile]) -> list[StoredFile]:
    return [each for each in files if each.gpu == job.job.gpu]


def _job_result(judged: _JudgedJob) -> http.Json:
    evaluation = judged.evaluation
    profiled = evaluation.mode is Mode.PROFILE
    runs = _profiles(judged) if profiled else _phases(judged.job, evaluation)
    return {
        "success": True,
        "error": "",
        "system": _system(evaluation.environment, evaluation.gpus),
        "profile_metadata": judged.metadata,
        "runs": dict(runs),
    }


def _system(environment: Environment, gpus: int) -> http.Json:
    return {
        "gpu": environment.gpu,
        "device_count": gpus,
        "cpu": environment.cpu,
        "runtime": "CUDA" if environment.cuda else "",
        "platform": environment.platform,
        "torch": environment.torch or "",
        "hostname": "",
    }


def _phases(job: JobStatus, evaluation: Evaluation) -> Iterator[tuple[str, http.Json]]:
    """Yield each public phase; the log goes with the last."""
    public = [phase for phase in translate.phases(evaluation) if not phase.secret]
    for phase in public:
        result: http.Json = {"check": translate.check(passed=phase.passed), **(phase.result or {})}
        log = translate.shortened(evaluation.log) if phase is public[-1] else ""
        yield translate.WORDS[phase.mode], _eval(job, _run(evaluation, phase, result, stdout=log))


def _profiles(judged: _JudgedJob) -> Iterator[tuple[str, http.Json]]:
    """Yield one run for each case; the first one has the profiler's text about all of them."""
    job, evaluation, files = judged.job, judged.evaluation, judged.files
    passed = evaluation.verdict is Verdict.PASSED
    text = translate.shortened(evaluation.log)
    requested = judged.submission.profile
    first = requested.benchmark if requested is not None and requested.benchmark is not None else 0
    cases = [case for case in evaluation.cases if case.kind is CaseKind.PROFILE]
    for number, case in enumerate(cases):
        # Only here popcorn-cli needs the count as a number; otherwise it shows no report.
        result: http.Json = {"benchmark-count": 1, "benchmark.0.spec": case.spec}
        if number == 0:
            result["benchmark.0.report"] = _base64(text.encode())
        phase = translate.KernelBotRun(Mode.PROFILE, passed)
        run = _run(evaluation, phase, {**result, "check": translate.check(passed=passed)})
        reports = [each for each in files if each.file.name.startswith(f"case-{number + 1}.")]
        if judged.by_ncu and not any(map(_is_report, reports)):
            run |= _without_report(run, text)
        yield f"profile.{first + number}", _eval(job, run, _profile(text, reports))
    if not cases:
        phase = translate.KernelBotRun(Mode.PROFILE, passed)
        run = _run(evaluation, phase, {"check": translate.check(passed=passed)}, stdout=text)
        yield f"profile.{first}", _eval(job, run, _profile(text, ()))


def _is_report(file: StoredFile) -> bool:
    return file.file.name.endswith(_REPORT)


def _without_report(run: http.Json, text: str) -> http.Json:
    """Return a run without an `ncu` report; the text of other profilers is in its output."""
    message = "there is no report of Nsight Compute; the output says why"
    failed = {"success": False, "passed": False, "exit_code": run["exit_code"] or _CRASH}
    return {**failed, "stderr": run["stderr"] or message, "stdout": text}


def _profile(text: str, files: Sequence[StoredFile]) -> http.Json:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, _DETAILS, text.encode())
        for each in files:
            with suppress(ValueError):  # files that cannot be decompressed are left out
                own = each.file.name
                name = _NAMES.get(PurePosixPath(own).suffix, own)
                _add(archive, f"{_FOLDER}/{name}", each.file.content())
    return {
        "profiler": "Nsight-Compute" if any(map(_is_report, files)) else "torch.profiler",
        "trace": _base64(packed.getvalue()),
        "download_url": None,
    }


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)


def _run(
    evaluation: Evaluation, phase: translate.KernelBotRun, result: http.Json, *, stdout: str = ""
) -> http.Json:
    ended = translate.diagnostics(evaluation, phase, stdout=stdout)
    return {**ended, "passed": phase.passed, "command": "", "result": result}


def _eval(job: JobStatus, run: http.Json, profile: http.Json | None = None) -> http.Json:
    return {
        "start": translate.moment(job.job.started_at),
        "end": translate.moment(job.job.finished_at),
        "compilation": None if job.evaluation is None else translate.compilation(job.evaluation),
        "run": run,
        "profile": profile,
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

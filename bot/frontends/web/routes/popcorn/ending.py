"""The end of a submission as KernelBot's `result`: what each phase gave, and reports to read."""

import asyncio
import base64
import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.frontends.web.routes.popcorn.drawing import markdown, shortened
from bot.frontends.web.routes.popcorn.modes import WORDS
from bot.frontends.web.routes.popcorn.results import check
from bot.frontends.web.routes.popcorn.runs import Phase, moment, phases
from bot.frontends.web.routes.popcorn.standing import standing_of
from bot.ports import Store, StoredFile
from bot.reports.evaluation import verdict_line
from bot.reports.status import status_report
from bot.services.profiles import profile_files
from bot.services.status import JobStatus, SubmissionStatus
from runners.contract.evaluation import CaseKind, Environment, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

Json = dict[str, object]

_EXITS = {Verdict.PASSED: 0, Verdict.WRONG_ANSWER: 112, Verdict.TIMED_OUT: 114}
"""What KernelBot's evaluators end with; everything else is a crash there."""
_CRASH = 1
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The archive says no time, so that the same files make the same bytes."""
_FOLDER = "profile_data"
_DETAILS = f"{_FOLDER}/ncu-details.txt"
"""popcorn-cli unpacks a file of this name, and those that end in .ncu-rep."""


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last event: `result`, or `error` where nothing was judged."""

    event: str
    body: Json


async def last_event(store: Store, status: SubmissionStatus) -> LastEvent:
    """How a submission has ended."""
    files = await profile_files(store, status.submission)
    results = [
        await asyncio.to_thread(_full, job, job.evaluation, files)
        for job in status.jobs
        if job.evaluation is not None
    ]
    if not results:
        _, error = standing_of(status)
        return LastEvent("error", {"status": "error", "detail": error or "it was not judged"})
    reports = [markdown(status_report(status))]
    return LastEvent("result", {"status": "success", "results": results, "reports": reports})


def _full(job: JobStatus, evaluation: Evaluation, files: Sequence[StoredFile]) -> Json:
    own = [each for each in files if each.gpu == job.job.gpu]
    profiled = evaluation.mode is Mode.PROFILE
    runs = _profiles(job, evaluation, own) if profiled else _phases(job, evaluation)
    return {
        "success": True,
        "error": "",
        "system": _system(evaluation.environment, evaluation.gpus),
        "runs": dict(runs),
    }


def _system(environment: Environment, gpus: int) -> Json:
    return {
        "gpu": environment.gpu,
        "device_count": gpus,
        "cpu": environment.cpu,
        "runtime": "CUDA" if environment.cuda else "",
        "platform": environment.platform,
        "torch": environment.torch or "",
        "hostname": "",
    }


def _phases(job: JobStatus, evaluation: Evaluation) -> Iterator[tuple[str, Json]]:
    """Each public phase; the log goes with the last."""
    public = [phase for phase in phases(evaluation) if not phase.secret]
    for phase in public:
        result: Json = {"check": check(passed=phase.passed), **(phase.result or {})}
        log = shortened(evaluation.log) if phase is public[-1] else ""
        yield WORDS[phase.mode], _eval(job, _run(evaluation, phase, result, stdout=log))


def _profiles(
    job: JobStatus, evaluation: Evaluation, files: Sequence[StoredFile]
) -> Iterator[tuple[str, Json]]:
    """One run for each case; the profiler's text tells of all of them, and goes with the first."""
    passed = evaluation.verdict is Verdict.PASSED
    text = shortened(evaluation.log)
    cases = [case for case in evaluation.cases if case.kind is CaseKind.PROFILE]
    for number, case in enumerate(cases):
        # The one place where popcorn-cli wants a number for the count, else it shows no report.
        result: Json = {"benchmark-count": 1, "benchmark.0.spec": case.spec}
        if number == 0:
            result["benchmark.0.report"] = _base64(text.encode())
        phase = Phase(Mode.PROFILE, passed)
        run = _run(evaluation, phase, {**result, "check": check(passed=passed)})
        found = [each for each in files if each.file.name.startswith(f"case-{number + 1}.")]
        yield f"profile.{number}", _eval(job, run, _profile(text, found))
    if not cases:
        phase = Phase(Mode.PROFILE, passed)
        run = _run(evaluation, phase, {"check": check(passed=passed)}, stdout=text)
        yield "profile.0", _eval(job, run, _profile(text, files))


def _profile(text: str, files: Sequence[StoredFile]) -> Json:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, _DETAILS, text.encode())
        for each in files:
            with suppress(ValueError):  # what cannot be unpacked is left out
                _add(archive, f"{_FOLDER}/{each.file.name}", each.file.content())
    return {
        "profiler": "Nsight-Compute" if files else "torch.profiler",
        "trace": _base64(packed.getvalue()),
        "download_url": None,
    }


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)


def _run(evaluation: Evaluation, phase: Phase, result: Json, *, stdout: str = "") -> Json:
    verdict = Verdict.PASSED if phase.passed else evaluation.verdict
    exit_code = _EXITS.get(verdict, _CRASH)
    wrong = "" if phase.passed else f"{verdict_line(evaluation).text}: {evaluation.message}"
    return {
        "success": exit_code in {_EXITS[Verdict.PASSED], _EXITS[Verdict.WRONG_ANSWER]},
        "passed": phase.passed,
        "command": "",
        "stdout": stdout,
        "stderr": shortened(wrong),
        "exit_code": exit_code,
        "duration": evaluation.wall_s,
        "result": result,
    }


def _eval(job: JobStatus, run: Json, profile: Json | None = None) -> Json:
    return {
        "start": moment(job.job.started_at),
        "end": moment(job.job.finished_at),
        "compilation": None,
        "run": run,
        "profile": profile,
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

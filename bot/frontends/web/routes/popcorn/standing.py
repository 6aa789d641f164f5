"""Where a submission stands, in the words that popcorn-cli looks for.

It ends with an error at `failed`, `timed_out` and `hacked`, which it shows with the error that
comes along; every other word it shows as it is, until the submission is done.
"""

from bot.domain.job import JobState
from bot.domain.moderation import Exclusion, ExclusionKind
from bot.domain.status import JobStatus, SubmissionStatus
from bot.frontends.web.routes.popcorn.drawing import plain
from bot.reports.blocks import Report
from bot.reports.evaluation import evaluation_report
from bot.reports.status import job_line
from runners.contract.verdict import Verdict

SUCCEEDED, FAILED, TIMED_OUT, HACKED = "succeeded", "failed", "timed_out", "hacked"


def standing_of(status: SubmissionStatus) -> tuple[str, str | None]:
    """The word, and what was wrong where something was."""
    if status.exclusion is not None:
        return _excluded(status.exclusion)
    if not status.is_final:
        return "; ".join(progress_of(job) for job in status.jobs), None
    faults = [(job, fault) for job in status.jobs if (fault := _fault(job)) is not None]
    if not faults:
        return SUCCEEDED, None
    every_late = all(_is_late(job) for job, _ in faults)
    return TIMED_OUT if every_late else FAILED, "\n\n".join(fault for _, fault in faults)


def progress_of(job: JobStatus) -> str:
    """One job in a few words, such as `queued, place 3, about 2 min`."""
    return job_line(job).text.removeprefix(f"{job.job.gpu}: ")


def _excluded(exclusion: Exclusion) -> tuple[str, str]:
    """An admin's word that it is none is KernelBot's `hacked`; nothing else is."""
    why = f": {exclusion.reason}" if exclusion.reason else ""
    kind = exclusion.kind
    word = HACKED if kind is ExclusionKind.DISQUALIFIED else kind.value
    return word, f"{kind}, so it is not ranked{why}"


def _fault(job: JobStatus) -> str | None:
    if job.job.state is JobState.CANCELLED:
        return "it was cancelled"
    if job.evaluation is None:
        return plain(Report("", (job_line(job),)))
    if job.evaluation.verdict is Verdict.PASSED:
        return None
    return plain(evaluation_report(job.evaluation))


def _is_late(job: JobStatus) -> bool:
    return job.evaluation is not None and job.evaluation.verdict is Verdict.TIMED_OUT

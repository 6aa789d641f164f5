"""The texts that popcorn-cli shows: a submission's state, reports as lines and as Markdown.

popcorn-cli exits with an error at the states `failed`, `timed_out` and `hacked`, and shows the
error message. It shows every other state unchanged until the submission is done.
"""

from typing import assert_never

from bot.domain.job import JobState
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.submission import Exclusion, ExclusionKind
from bot.reports.blocks import Attachment, Block, Chart, Link, Log, Report, Table, Text
from bot.reports.charts import as_table
from bot.reports.escaping import clean, one_line, table_lines
from bot.reports.submission import evaluation_report, job_line
from runners.contract.verdict import Verdict

LONGEST_LOG = 16_384
"""The most characters of a log; the other front ends show all of it."""


def plain(report: Report) -> str:
    """The report without its title, as lines."""
    return "\n".join(filter(None, (_drawn(block, fence="") for block in report.blocks)))


def markdown(report: Report) -> str:
    """The report as Markdown; a submission's output cannot end its code fence."""
    drawn = [f"## {one_line(report.title)}"]
    drawn += [_drawn(block, fence="~~~~") for block in report.blocks]
    return "\n\n".join(filter(None, drawn))


def _drawn(block: Block, fence: str) -> str:
    match block:
        case Text(text):
            return clean(text).strip()
        case Table() | Chart():
            table = as_table(block) if isinstance(block, Chart) else block
            return _fenced(table.title, "\n".join(table_lines(table)), fence)
        case Log(title, text):
            return _fenced(title, shortened(text), fence)
        case Link(text, url):
            return f"{one_line(text)}: {url}"
        case Attachment():
            return ""
        case _:
            assert_never(block)


def _fenced(title: str, text: str, fence: str) -> str:
    if not fence:
        return f"{title}:\n{text}"
    inside = text.replace("~", "\N{TILDE OPERATOR}") if fence in text else text
    return f"{title}\n{fence}\n{inside}\n{fence}"


def shortened(text: str) -> str:
    """A log without terminal control characters; only the last whole lines if it is long."""
    text = clean(text).strip("\n")
    if len(text) <= LONGEST_LOG:
        return text
    end = text[-LONGEST_LOG:].partition("\n")[2] or text[-LONGEST_LOG:]
    return f"[...] {len(text) - len(end):,} characters before this are left out\n{end}"


SUCCEEDED, FAILED, TIMED_OUT, HACKED = "succeeded", "failed", "timed_out", "hacked"


def standing_of(status: SubmissionStatus) -> tuple[str, str | None]:
    """The state, and the error if there is one."""
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
    """The state and error of an excluded submission; only a disqualification is `hacked`."""
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

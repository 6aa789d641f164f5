"""The short texts of a submission: its live message, its thread's name, its public line."""

from collections.abc import Sequence

from bot.discord.escaping import MOST, line
from bot.domain.leaderboard import Placement
from bot.domain.status import JobStatus, SubmissionStatus
from bot.reports.blocks import Tone
from bot.reports.escaping import one_line
from bot.reports.standings import placement_line
from bot.reports.submission import job_line, warning_of

_MARKS = {Tone.GOOD: "🟢 ", Tone.BAD: "🔴 "}
_THREAD_NAME = 100
"""Characters in a thread's name."""
_FILE_NAME = 50
"""How many of these characters the file's name may take; also its limit in a public line."""


def headline(now: SubmissionStatus) -> str:
    """Return the first line of the live message, which never changes."""
    submission = now.submission
    name = line(submission.file_name, 60)
    return (
        f"**Submission #{submission.id}**: {name}, {submission.mode} on **{line(now.board.name)}**"
    )


def live_text(now: SubmissionStatus) -> str:
    """Return the submission, one line per GPU type, and any warning."""
    warning = warning_of(now)
    said = [f"-# Warning: {line(warning, 400)}"] if warning else []
    return _fitted([headline(now), *map(_job, now.jobs), *said])


def _job(job: JobStatus) -> str:
    text = job_line(job)
    return f"> {_MARKS.get(text.tone, '')}{line(text.text, 150)}"


def thread_name(now: SubmissionStatus) -> str:
    """Return a name such as `#12 kernel.py on matmul`; thread names have no markup."""
    name = one_line(now.submission.file_name)[:_FILE_NAME]
    return f"#{now.submission.id} {name} on {one_line(now.board.name)}"[:_THREAD_NAME]


def line_text(now: SubmissionStatus, user: int, won: Sequence[Placement]) -> str:
    """Return whose submission it is, and its place on each GPU type."""
    name, board = line(now.submission.file_name, _FILE_NAME), line(now.board.name)
    head = f"<@{user}>'s submission #{now.submission.id} {name} on {board}"
    return _fitted([head, *(placement_line(each).text for each in won)])


def _fitted(lines: Sequence[str]) -> str:
    """Join the lines into one message; count the last ones if they do not fit."""
    text = "\n".join(lines)
    shown = len(lines)
    while len(text) > MOST:
        shown -= 1
        text = "\n".join([*lines[:shown], f"-# and {len(lines) - shown} more"])
    return text

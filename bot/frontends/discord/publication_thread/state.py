"""What is told of a release: the message that moves with its check, and how it ended."""

from bot.domain.task_report import CheckStep, Level
from bot.frontends.discord.wishes import Outcome
from bot.frontends.discord.words import MOST, line
from bot.reports.blocks import Text, Tone
from bot.reports.task_check import step_line, task_report
from bot.services.publishing.pipeline import Released, UnsoundTaskError

_ROOM = 40
"""Letters for the line that says how many runs are not shown."""


def published(released: Released, before: int) -> Outcome:
    """What became of the board; `before` is the number of the task version that it had."""
    published = released.published
    board = published.board
    lines = [(published.told, Tone.GOOD), *_runs(released)]
    return Outcome(
        title=f"Leaderboard {board.name}",
        lines=tuple(lines),
        board=board.id,
        before=before,
        change=published.change,
    )


def _runs(released: Released) -> list[tuple[str, Tone]]:
    return [
        (f"not run on {report.gpu}: {report.obstacle}", Tone.QUIET)
        for report in released.reports
        if not report.dry_run
    ]


def unsound(error: UnsoundTaskError) -> Outcome:
    """Every finding of the check."""
    report = task_report(error.report)
    lines = [(each.text, each.tone) for each in report.blocks if isinstance(each, Text)]
    lines.append(("Nothing was published. Mend it, and give the command again.", Tone.BAD))
    return Outcome(title=report.title, lines=tuple(lines))


def refused(name: str, words: str) -> Outcome:
    """Why nothing became of it."""
    return Outcome(title=f"Leaderboard {name}", lines=((words, Tone.BAD),))


def live_text(name: str, steps: list[CheckStep], tries: int) -> str:
    """How many runs have ended, and each run on a line of its own, as many as there is room for."""
    ended = sum(each.finding is not None for each in steps)
    count = f"{ended} of {len(steps)} runs have ended" if steps else "it is read"
    head = f"**Checking the task of {line(name)}**: {count}"
    if tries > 1:
        head += "\n-# begun anew, since the bot was restarted"
    several = len({each.gpu for each in steps}) > 1
    lines = [
        f"> {_mark(each)} {line(step_line(each, with_gpu=several), 160)}"
        for each in _by_interest(steps)
    ]
    text = head
    for number, each in enumerate(lines):
        if len(text) + len(each) > MOST - _ROOM:
            return f"{text}\n> and {len(lines) - number} more"
        text += f"\n{each}"
    return text


def _by_interest(steps: list[CheckStep]) -> list[CheckStep]:
    """What went wrong, what moves, what has ended, what waits; each in the task's own order."""
    return sorted(steps, key=_interest)


def _interest(step: CheckStep) -> int:
    if step.finding is not None:
        return 0 if step.finding.level is Level.ERROR else 2
    return 3 if step.stage is None else 1


def _mark(step: CheckStep) -> str:
    if step.finding is None:
        return "▫️" if step.stage is None else "▶️"
    return "🔴" if step.finding.level is Level.ERROR else "🟢"

"""Where a publication is shown, and its texts: the live message and the outcome."""

from typing import Any

import discord
from pydantic import BaseModel, ConfigDict

from bot.discord.escaping import MOST, line
from bot.domain.tasks.lint import CheckStep, Level
from bot.reports.blocks import Report, Text, Tone
from bot.reports.tasks import step_line, task_check_report
from bot.services.publishing.state import PublicationOutcome

_ROOM = 40
"""Characters reserved for the line that counts the runs not shown."""


class PublicationThread(BaseModel):
    """The channel that a publication came from, and what was sent so far."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    thread: int | None = None
    """The id of the private thread, or of the direct messages."""
    direct: bool = False
    """Whether `thread` is direct messages."""
    live: int | None = None
    """The live message of the check."""
    told: int = 0
    """How many messages of the outcome were sent."""
    announced: bool = False

    @classmethod
    def here(cls, interaction: discord.Interaction[Any]) -> "PublicationThread":
        """Return a state in an interaction's channel, or in that channel's parent."""
        channel = interaction.channel
        parent = channel.parent_id if isinstance(channel, discord.Thread) else None
        return cls(channel=parent or interaction.channel_id or 0, user=interaction.user.id)


def outcome_report(outcome: PublicationOutcome) -> Report:
    """Return the result for the board, or every finding of a failed check."""
    if outcome.report is not None:
        blocks = task_check_report(outcome.report).blocks
        words = "Nothing was published. Fix the task and run the command again."
        return Report(outcome.title, (*blocks, Text(words, Tone.BAD)))
    tone = Tone.BAD if outcome.board is None else Tone.GOOD
    lines = [Text(outcome.message, tone)]
    lines += [Text(f"not run on {gpu}: {why}", Tone.QUIET) for gpu, why in outcome.checked if why]
    return Report(outcome.title, tuple(lines))


def live_text(name: str, steps: tuple[CheckStep, ...], tries: int) -> str:
    """Return how many runs have ended, and one line per run, as many as fit."""
    ended = sum(each.finding is not None for each in steps)
    count = f"{ended} of {len(steps)} runs have ended" if steps else "it is read"
    head = f"**Checking the task of {line(name)}**: {count}"
    if tries > 1:
        head += "\n-# started again, because the bot was restarted"
    several = len({each.gpu for each in steps}) > 1
    lines = [
        f"> {_mark(each)} {line(step_line(each, with_gpu=several), 160)}"
        for each in sorted(steps, key=_interest)
    ]
    text = head
    for number, each in enumerate(lines):
        if len(text) + len(each) > MOST - _ROOM:
            return f"{text}\n> and {len(lines) - number} more"
        text += f"\n{each}"
    return text


def _interest(step: CheckStep) -> int:
    """Sort failed runs first, then running, ended and waiting ones."""
    if step.finding is not None:
        return 0 if step.finding.level is Level.ERROR else 2
    return 3 if step.stage is None else 1


def _mark(step: CheckStep) -> str:
    if step.finding is None:
        return "▫️" if step.stage is None else "▶️"
    return "🔴" if step.finding.level is Level.ERROR else "🟢"

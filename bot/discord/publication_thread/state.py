"""Where a publication is shown, and its words: the live message of its check, and its outcome."""

from typing import Any

import discord
from pydantic import BaseModel, ConfigDict

from bot.discord.escaping import MOST, line
from bot.domain.tasks.report import CheckStep, Level
from bot.reports.blocks import Report, Text, Tone
from bot.reports.tasks import step_line, task_check_report
from bot.services.publishing.state import PublicationOutcome

_ROOM = 40
"""Letters for the line that says how many runs are not shown."""


class PublicationThread(BaseModel):
    """The channel that a publication came from, and what was sent so far."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    thread: int | None = None
    """Where it is shown: a private thread's number, or that of direct messages."""
    direct: bool = False
    """Whether that is direct messages."""
    live: int | None = None
    """The message that moves with the check."""
    told: int = 0
    """How many messages of the outcome are sent."""
    announced: bool = False

    @classmethod
    def here(cls, interaction: discord.Interaction[Any]) -> "PublicationThread":
        """In the channel of an interaction, or in that channel's parent."""
        channel = interaction.channel
        parent = channel.parent_id if isinstance(channel, discord.Thread) else None
        return cls(channel=parent or interaction.channel_id or 0, user=interaction.user.id)


def outcome_report(outcome: PublicationOutcome) -> Report:
    """Return what became of the board, or every finding of a check that failed."""
    if outcome.report is not None:
        blocks = task_check_report(outcome.report).blocks
        words = "Nothing was published. Mend it, and give the command again."
        return Report(outcome.title, (*blocks, Text(words, Tone.BAD)))
    tone = Tone.BAD if outcome.board is None else Tone.GOOD
    lines = [Text(outcome.message, tone)]
    lines += [Text(f"not run on {gpu}: {why}", Tone.QUIET) for gpu, why in outcome.checked if why]
    return Report(outcome.title, tuple(lines))


def live_text(name: str, steps: tuple[CheckStep, ...], tries: int) -> str:
    """How many runs have ended, and each run on a line of its own, as many as there is room for."""
    ended = sum(each.finding is not None for each in steps)
    count = f"{ended} of {len(steps)} runs have ended" if steps else "it is read"
    head = f"**Checking the task of {line(name)}**: {count}"
    if tries > 1:
        head += "\n-# begun anew, since the bot was restarted"
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
    """What failed first, then what moves, what has ended, and what waits."""
    if step.finding is not None:
        return 0 if step.finding.level is Level.ERROR else 2
    return 3 if step.stage is None else 1


def _mark(step: CheckStep) -> str:
    if step.finding is None:
        return "▫️" if step.stage is None else "▶️"
    return "🔴" if step.finding.level is Level.ERROR else "🟢"

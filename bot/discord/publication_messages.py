"""What is shown of a publication: the live text of its check, and its outcome."""

from collections.abc import Iterator

import discord

from bot.discord import channels
from bot.discord.buttons import board_buttons, check_buttons
from bot.discord.context import FRONT_END, DiscordContext, Interaction, context_of
from bot.discord.escaping import MESSAGE_LIMIT, line
from bot.discord.notifications import closing_line
from bot.discord.responses import InteractionReply
from bot.discord.roles import viewer_of
from bot.domain.board import Board
from bot.domain.ids import PublicationId
from bot.domain.publication import PublishChange
from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import CheckStep, Level
from bot.reports.blocks import Report, Text, Tone
from bot.reports.tasks import step_line, task_check_report
from bot.services.publishing.publish import REQUEST
from bot.services.publishing.state import PublicationOutcome, PublicationState, own_publication
from bot.services.submissions import best_of

_RESERVED = 40
"""Characters reserved for the line that counts the runs not shown."""


async def say_checking(answer: InteractionReply, text: str, number: PublicationId) -> None:
    """Confirm that a check is stored; this answer gets its outcome if nothing else can."""
    answer.is_followed = True
    await answer.conclude(f"{text} {await _where_shown(answer.interaction, number)}")


async def _where_shown(interaction: Interaction, number: PublicationId) -> str:
    """Return in a sentence where the person can follow a publication."""
    client, context = interaction.client, context_of(interaction)
    channel = await channels.channel_of(client, channels.home_channel(interaction))
    command = f"`/leaderboard check show id:{number}`"
    place = ""
    if channel is not None and channels.has_private_threads(channel):
        place = "your private thread"
    elif await channels.direct_messages(client, context, interaction.user.id) is not None:
        place = "our direct messages"
    if not place:
        return f"{command} shows the progress, and for 30 days the outcome."
    return f"Follow the progress in {place}; {command} shows it too, and for 30 days the outcome."


async def rejudge_question(
    context: DiscordContext, board: Board, before: int
) -> tuple[str, discord.ui.View | None]:
    """Return the question whether to judge earlier submissions again, and its button."""
    versions = await context.store.boards.versions(board.id)
    earlier = next((each.id for each in versions if each.number == before), None)
    best = () if earlier is None else await best_of(context.store, board, earlier)
    closes = closing_line(board.deadline)
    if not best:
        return f"{closes} No ranked submissions yet.", None
    question = f"Judge everyone's best submission ({len(best)}) with the new version too?"
    return f"{closes} {question}", board_buttons(board, before, rejudge=True)


async def show_check(answer: InteractionReply, number: PublicationId) -> None:
    """Show the progress or the outcome of the person's own check, or of any to an admin."""
    context, viewer = context_of(answer.interaction), await viewer_of(answer.interaction)
    found = await own_publication(context.store, viewer, FRONT_END, number)
    state = PublicationState.model_validate_json(found.state)
    outcome = state.outcome
    if outcome is None:
        name = REQUEST.validate_json(found.wish).name or ""
        view = None if state.publishing else check_buttons(number)
        await answer.say(live_text(name, state.steps, found.tries), view)
        return
    await answer.show(outcome_report(outcome))
    board = None if outcome.board is None else await context.store.boards.get(outcome.board)
    if board is not None and outcome.change is PublishChange.NEW_VERSION:
        await answer.say(*await rejudge_question(context, board, outcome.before))


def outcome_report(outcome: PublicationOutcome) -> Report:
    """Return who grades and the board's result; after a failed check its findings, errors first."""
    if outcome.report is not None:
        blocks = task_check_report(outcome.report).blocks
        if outcome.report.undecided:
            message = f"Nothing was published. To publish, {HOW_TO_CHOOSE}."
            return Report(outcome.title, (*blocks, Text(message, Tone.BAD)))
        message = "Nothing was published. Fix the task and run the command again."
        errors = [each for each in blocks if isinstance(each, Text) and each.tone is Tone.BAD]
        others = [each for each in blocks if each not in errors]
        return Report(outcome.title, (*errors, Text(message, Tone.BAD), *others))
    return Report(outcome.title, tuple(_outcome_lines(outcome)))


def _outcome_lines(outcome: PublicationOutcome) -> Iterator[Text]:
    if outcome.grading:
        yield Text(outcome.grading)
    yield Text(outcome.message, Tone.GOOD if outcome.published else Tone.BAD)
    for gpu, why in outcome.checked:
        if why:
            yield Text(f"not run on {gpu}: {why}", Tone.QUIET)
    for words in outcome.ignored:
        yield Text(f"ignored: {words}", Tone.QUIET)
    for each in outcome.boards:
        yield from _outcome_lines(each)


def live_text(
    name: str, steps: tuple[CheckStep, ...], tries: int, *, has_ended: bool = False
) -> str:
    """Return how many runs have ended, and one line per run, as many as fit.

    If the check `has_ended` before some of its runs, those were stopped.
    """
    ended = sum(each.finding is not None for each in steps)
    nothing = "nothing was run" if has_ended else "reading its files"
    count = f"{ended} of {len(steps)} runs have ended" if steps else nothing
    if has_ended and ended < len(steps):
        count += f", {len(steps) - ended} stopped"
        steps = tuple(each for each in steps if each.finding is not None)
    head = f"**Checking the task of {line(name)}**: {count}"
    if tries > 1:
        head += "\n-# started again, because the bot was restarted"
    several = len({each.gpu for each in steps}) > 1
    lines = [
        f"> {_mark(each)} {line(step_line(each, with_gpu=several), 160)}"
        for each in sorted(steps, key=_sort_key)
    ]
    text = head
    for number, each in enumerate(lines):
        if len(text) + len(each) > MESSAGE_LIMIT - _RESERVED:
            return f"{text}\n> and {len(lines) - number} more"
        text += f"\n{each}"
    return text


def _sort_key(step: CheckStep) -> int:
    """Sort failed runs first, then running, ended and waiting ones."""
    if step.finding is not None:
        return 0 if step.finding.level is Level.ERROR else 2
    return 3 if step.stage is None else 1


def _mark(step: CheckStep) -> str:
    if step.finding is None:
        return "▫️" if step.stage is None else "▶️"
    return "🔴" if step.finding.level is Level.ERROR else "🟢"

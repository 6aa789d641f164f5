"""What can be done with a submission here, from a button or from a command alike."""

from bot.discord.context import door_of
from bot.discord.places import display_here
from bot.discord.responses import Answer
from bot.discord.submitting import stored_words
from bot.discord.viewers import viewer_of
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.reports.blocks import Attachment, Report
from bot.services import cancel, rerun, sources
from runners.contract.task import Mode


async def stop(answer: Answer, submission: SubmissionId) -> None:
    """What is queued ends at once, what runs within seconds."""
    viewer = await viewer_of(answer.interaction)
    stopped = await cancel.cancel(door_of(answer.interaction).store, viewer, submission)
    if not stopped:
        raise UserError("finished", f"submission {submission} has ended already")
    await answer.say(f"Stopping submission #{submission}.")


async def run_again(answer: Answer, submission: SubmissionId, mode: Mode | None = None) -> None:
    """The same source as a new submission, in its own mode where none is named."""
    door, viewer = door_of(answer.interaction), await viewer_of(answer.interaction)
    request = rerun.RerunRequest(viewer, submission, mode, display_here(answer.interaction))
    again = await rerun.rerun(door.store, door.clock, request)
    words = f"Submission #{submission} runs again as #{again.id}."
    await answer.say(f"{words} {stored_words(answer.interaction, again)}")


async def rank_again(answer: Answer, submission: SubmissionId) -> None:
    """The same source as a ranked submission."""
    await run_again(answer, submission, Mode.RANKED)


async def show_source(answer: Answer, submission: SubmissionId) -> None:
    """The file, for those who may see it."""
    door, viewer = door_of(answer.interaction), await viewer_of(answer.interaction)
    found = await sources.source(door.store, door.clock, viewer, submission)
    file = Attachment(found.file_name, found.text.encode())
    await answer.show(Report(f"Source of submission #{submission}", (file,)))

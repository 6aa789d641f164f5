"""`/leaderboard create|update`, `/admin competition publish`: boards and competitions from zips."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import discord
from discord import app_commands

from bot.discord import options, questions, roles
from bot.discord.context import FRONT_END, NEEDED_ROLE, Interaction, Tree, add_commands, context_of
from bot.discord.draw import message_drafts
from bot.discord.escaping import line
from bot.discord.interaction_claims import replying
from bot.discord.notifications import closing_line
from bot.discord.publication_messages import say_checking
from bot.discord.publication_thread import PublicationThread
from bot.discord.responses import InteractionReply
from bot.domain.board import Access, Board, SourceVisibility, Visibility, parse_pins
from bot.domain.errors import UserError
from bot.domain.publication import NewPublication, PublishChange, PublishRequest
from bot.domain.records import Question
from bot.domain.times import parse_deadline
from bot.reports.blocks import Report, Text, Tone
from bot.reports.tasks import change_report, upload_report
from bot.services.lookup import own_board
from bot.services.publishing import publish
from bot.services.publishing.pipeline import prepare_competition, under_chosen_grader
from runners.contract.gpus import gpu_types
from runners.contract.task import Grader, TaskDefinition


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    questions.KINDS.update({each.action: each for each in (_CREATE, _UPDATE)})
    add_commands(tree, "leaderboard", create, update)
    add_commands(tree, "admin competition", publish_competition)


@dataclass(frozen=True, slots=True)
class _Change:
    """The requested change of who may see a board; None keeps the current value."""

    visibility: Visibility | None = None
    members_only: bool | None = None
    sources: SourceVisibility | None = None


_POOL = "Pool for ranked runs, such as modal or A100=local; any allows every pool"
_GRADER = "Grader of a task that ships an eval.py: native (Podium's judge) or popcorn (its eval.py)"
_ACCESS_OPTIONS = {
    "visibility": "Private: only people whom its owner invites can see it",
    "members_only": "Only for members of this server",
    "sources": "When others may read the submitted sources",
}


@app_commands.command(
    description="Create a board from a task zip", extras={NEEDED_ROLE: roles.CREATOR}
)
@app_commands.describe(
    leaderboard_name="The board's name",
    task_zip="Task zip made by `podium task pack`",
    deadline="YYYY-MM-DD[ HH:MM][ zone], default zone UTC; leave empty for no deadline",
    gpus="GPU types, separated by commas; leave empty to choose from a menu",
    pool=_POOL,
    grader=_GRADER,
    **_ACCESS_OPTIONS,
)
@app_commands.autocomplete(gpus=options.gpus)
async def create(  # noqa: PLR0913  an argument for each option
    interaction: Interaction,
    *,
    leaderboard_name: app_commands.Range[str, 1, 64],
    task_zip: discord.Attachment,
    deadline: str | None = None,
    gpus: str | None = None,
    visibility: Visibility = Visibility.PUBLIC,
    members_only: bool = False,
    sources: SourceVisibility = SourceVisibility.AFTER_DEADLINE,
    pool: str | None = None,
    grader: Grader | None = None,
) -> None:
    """Validate the zip and start its check; the board is published and announced after it."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.CREATOR, roles.ADMIN)
        context = context_of(interaction)
        if await context.store.boards.find(leaderboard_name) is not None:
            raise UserError(
                "board-exists",
                f"board {leaderboard_name!r} already exists; "
                "use `/leaderboard update` or another name",
            )
        person = await context.person(interaction.user)
        request = PublishRequest(
            person.id,
            leaderboard_name,
            options.gpu_names(gpus),
            None if deadline is None else parse_deadline(deadline),
            access=_access(interaction, Access(), _Change(visibility, members_only, sources)),
            pins=parse_pins((pool or "",)),
            grader=grader,
        )
        await create_board(await upload_of(task_zip, request, answer), answer)


def _access(interaction: Interaction, present: Access, change: _Change) -> Access:
    """Return the present access with the requested changes."""
    house = present.house
    if change.members_only is not None:
        house = roles.guild_credential(interaction.guild_id or 0) if change.members_only else None
    return replace(
        present,
        visibility=change.visibility or present.visibility,
        house=house,
        source=change.sources or present.source,
    )


@app_commands.command(
    description="Change a board's deadline, task or visibility", extras={NEEDED_ROLE: roles.CREATOR}
)
@app_commands.describe(
    leaderboard_name="The board",
    deadline="YYYY-MM-DD[ HH:MM][ zone], or 'none' to remove the deadline",
    task_zip="Zip of the new task version, made by `podium task pack`",
    gpus="The new list of all its GPU types, separated by commas",
    pool=_POOL,
    grader=_GRADER,
    **_ACCESS_OPTIONS,
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpus=options.gpus)
async def update(  # noqa: PLR0913  an argument for each option
    interaction: Interaction,
    *,
    leaderboard_name: str,
    deadline: str | None = None,
    task_zip: discord.Attachment | None = None,
    gpus: str | None = None,
    visibility: Visibility | None = None,
    members_only: bool | None = None,
    sources: SourceVisibility | None = None,
    pool: str | None = None,
    grader: Grader | None = None,
) -> None:
    """Change settings at once, or check a new task version; old scores stay with their version."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.CREATOR, roles.ADMIN)
        change = _Change(visibility, members_only, sources)
        _require_setting((deadline, gpus, pool, change), task_zip, grader)
        viewer = await roles.viewer_of(interaction)
        board = await own_board(context_of(interaction).store, viewer, leaderboard_name)
        endless = deadline is not None and deadline.strip().lower() == "none"
        request = PublishRequest(
            viewer.person,
            board.name,
            options.gpu_names(gpus),
            None if deadline is None or endless else parse_deadline(deadline),
            endless=endless,
            as_admin=viewer.sees_all,
            access=_access(interaction, board.access, change),
            pins=parse_pins((pool or "",)),
            grader=grader,
        )
        if task_zip is None:
            await reconfigure(board, request, answer)
            return
        upload = await upload_of(task_zip, request, answer, board)
        await update_board(upload, board, answer)


def _require_setting(
    given: Sequence[object], task_zip: discord.Attachment | None, grader: Grader | None
) -> None:
    if grader is not None and task_zip is None:
        raise UserError("no-zip", "the option grader needs task_zip, whose solutions are run")
    if all(each in {None, _Change()} for each in (*given, task_zip)):
        raise UserError(
            "nothing", "name at least one setting to change, such as deadline or task_zip"
        )


ZIP_BYTES = 10 << 20


async def upload_of(
    attachment: discord.Attachment,
    request: PublishRequest,
    answer: InteractionReply,
    board: Board | None = None,
) -> publish.TaskUpload:
    """Show what a zip has, and return its task; UserError with file and line if it is invalid."""
    data = await _read(attachment)
    request = replace(request, zip_name=PurePath(attachment.filename).stem)
    bundle, parsed = await publish.read_upload(data, request)
    store = context_of(answer.interaction).store
    parsed = await under_chosen_grader(store, board, parsed, request.grader)
    await answer.show(await asyncio.to_thread(upload_report, bundle, parsed))
    return publish.TaskUpload(request, data, parsed.task)


async def _read(attachment: discord.Attachment) -> bytes:
    if attachment.size > ZIP_BYTES:
        raise UserError(
            "too-large", f"the zip has {attachment.size:,} bytes; at most {ZIP_BYTES:,} are allowed"
        )
    return await attachment.read()


async def create_board(upload: publish.TaskUpload, answer: InteractionReply) -> None:
    """Submit a new board for the named GPU types, or ask for them first."""
    context = context_of(answer.interaction)
    upload = replace(upload, request=replace(upload.request, onto=publish.NO_BOARD))
    if upload.request.gpus:
        await submit_publication(upload, answer)
        return
    gpus = await publish.possible_gpus(context.store, upload.task)
    if not gpus:
        raise publish.no_gpu(upload.task)
    request = upload.for_gpus(gpus).request
    await publish.validate_publish(context.store, context.clock, request, upload.task)
    chosen = tuple(gpu for gpu in gpus if gpu in gpu_types(upload.task.gpus))
    question = replace(_question(answer, _CREATE, upload), chosen=chosen)
    await questions.ask(answer, "Choose the board's GPU types:", question, gpus)


def _question(
    answer: InteractionReply, kind: questions.QuestionKind, upload: publish.TaskUpload
) -> Question:
    request = publish.REQUEST.dump_json(upload.request).decode()
    return questions.new_question(answer.interaction, kind, request, upload.zip)


async def _publish_answered(answer: InteractionReply, question: Question) -> None:
    """Read the zip again, and submit it; the person's rights are checked again."""
    interaction = answer.interaction
    roles.require(interaction, roles.CREATOR, roles.ADMIN)
    request = publish.REQUEST.validate_json(question.request)
    store, board = context_of(interaction).store, None
    if question.action == _UPDATE.action:
        viewer = await roles.viewer_of(interaction)
        board = await own_board(store, viewer, request.name or "")
    _, parsed = await publish.read_upload(question.content, request)
    parsed = await under_chosen_grader(store, board, parsed, request.grader)
    upload = publish.TaskUpload(request, question.content, parsed.task)
    await submit_publication(upload.for_gpus(question.chosen or request.gpus), answer)


_CREATE = questions.QuestionKind("create", "Check and publish", _publish_answered)
_UPDATE = questions.QuestionKind("update", _CREATE.label, _publish_answered, needs_gpus=False)


async def update_board(upload: publish.TaskUpload, board: Board, answer: InteractionReply) -> None:
    """Show what the next version changes; submit it when the person agrees."""
    context = context_of(answer.interaction)
    upload = replace(upload, request=replace(upload.request, onto=board.task_version))
    await publish.validate_publish(context.store, context.clock, upload.request, upload.task)
    report = await asyncio.to_thread(
        _changes, board, await _current_task(answer.interaction, board), upload
    )
    await answer.show(report)
    if len(report.blocks) == 1 and isinstance(report.blocks[0], Text):
        await reconfigure(board, upload.request, answer)  # the request may still change access
        return

    await questions.ask(
        answer,
        "New submissions are judged by the new version. Existing scores stay with the old "
        "version. Nothing is changed yet.",
        _question(answer, _UPDATE, upload),
    )


def _changes(board: Board, before: TaskDefinition, upload: publish.TaskUpload) -> Report:
    request, task = upload.request, upload.task
    deadline = None if request.endless else request.deadline or board.deadline
    gpus = publish.named_gpus(request, task, board)
    return change_report(board, before, task, gpus=gpus, deadline=deadline)


async def _current_task(interaction: Interaction, board: Board) -> TaskDefinition:
    version = await context_of(interaction).store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    return version.definition


async def submit_publication(upload: publish.TaskUpload, answer: InteractionReply) -> None:
    """Store the task to be checked; after that, a restart does not lose it."""
    context, request = context_of(answer.interaction), upload.request
    await publish.validate_publish(context.store, context.clock, request, upload.task)
    thread = PublicationThread.of_interaction(answer.interaction).model_dump_json()
    stored = publish.REQUEST.dump_json(request).decode()
    number = await context.store.publications.add(
        NewPublication(FRONT_END, request.person, upload.zip, stored, thread)
    )
    await say_checking(
        answer,
        "Checking your task: I'm running its solutions now. The board is published only if "
        "every solution gets its expected verdict.",
        number,
    )


async def reconfigure(board: Board, request: PublishRequest, answer: InteractionReply) -> None:
    """Change only a board's deadline, GPU types or access."""
    context = context_of(answer.interaction)
    task = await _current_task(answer.interaction, board)
    published = await publish.publish(
        context.store, context.clock, replace(request, onto=None), task
    )
    board = published.board
    result = "nothing to change" if published.change is PublishChange.UNCHANGED else "changed"
    text = Text(f"{board.name} on {', '.join(board.gpus)}: {result}", Tone.GOOD)
    drawn = message_drafts(Report(f"Leaderboard {board.name}", (text,)))[0].content
    await answer.conclude(f"{drawn}\n{closing_line(board.deadline)}")


@app_commands.command(name="publish", description="Publish a competition, or change it, from a zip")
@app_commands.describe(competition_zip="Zip of the competition's YAML and its tasks")
async def publish_competition(
    interaction: Interaction, competition_zip: discord.Attachment
) -> None:
    """Validate the zip and start its check; all boards are published after it, or none."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context, data = context_of(interaction), await _read(competition_zip)
        person = await context.person(interaction.user)
        request = await prepare_competition(
            context.store,
            context.clock,
            PublishRequest(person.id, strict=False, competition=True),
            data,
            is_admin=True,
        )
        thread = PublicationThread.of_interaction(interaction).model_dump_json()
        stored = publish.REQUEST.dump_json(request).decode()
        new = NewPublication(FRONT_END, person.id, data, stored, thread)
        await say_checking(
            answer,
            f"Checking the tasks of {line(request.name or '')}. Its boards are published only if "
            "every solution gets its expected verdict.",
            await context.store.publications.add(new),
        )

"""`/leaderboard show|show-personal|compare-gpus|list|task|template|help`: what people look up."""

from collections.abc import Iterator

import discord
from discord import app_commands

from bot.discord import options, pagination, roles
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.draw import MessageDraft, join_into_messages
from bot.discord.interaction_claims import replying
from bot.domain.errors import StoreError, UserError
from bot.reports.charts import scaling_report
from bot.reports.history import personal_report
from bot.reports.tasks import task_report, template_report
from bot.services import history, lookup, standings


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "leaderboard", show, show_personal, compare_gpus, list_boards)
    add_commands(tree, "leaderboard", task, template, show_help)


@app_commands.command(description="Show the standings of a board, with a plot of its best times")
@app_commands.describe(
    leaderboard_name="The board",
    gpu="GPU types, separated by commas; others can be chosen from a menu",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def show(interaction: Interaction, leaderboard_name: str, gpu: str | None = None) -> None:
    """Show the first page; buttons lead to other pages, a menu to other GPU types.

    With several GPU types, show the best ranks of each.
    """
    async with replying(interaction) as answer:
        context = context_of(interaction)
        viewer = await roles.viewer_of(interaction)
        names: list[str | None] = list(dict.fromkeys(options.gpu_names(gpu)))
        if len(names) > pagination.MAX_GPUS_AT_ONCE:
            raise UserError(
                "usage",
                f"at most {pagination.MAX_GPUS_AT_ONCE} GPU types can be shown at once; name fewer",
            )
        seasons = [
            await standings.season(context.store, context.clock, viewer, leaderboard_name, gpu=each)
            for each in names or [None]
        ]
        await answer.show(*pagination.standings_view(seasons))


@app_commands.command(name="show-personal", description="Your results on a board")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def show_personal(interaction: Interaction, leaderboard_name: str) -> None:
    """Show your ranks, the plot of your ranked times, and your submissions."""
    async with replying(interaction) as answer:
        store, viewer = context_of(interaction).store, await roles.viewer_of(interaction)
        personal_board = await history.personal_board(store, viewer, leaderboard_name)
        await answer.show(personal_report(personal_board))


@app_commands.command(
    name="compare-gpus", description="Everyone's best time on each GPU type of a board"
)
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def compare_gpus(interaction: Interaction, leaderboard_name: str) -> None:
    """Show a table, and a plot if there are several GPU types."""
    async with replying(interaction) as answer:
        viewer = await roles.viewer_of(interaction)
        scaling = await standings.scaling(context_of(interaction).store, viewer, leaderboard_name)
        await answer.show(scaling_report(scaling))


@app_commands.command(name="list", description="List all boards: open ones first, then closed ones")
async def list_boards(interaction: Interaction) -> None:
    """Show one line per board, in pages."""
    async with replying(interaction) as answer:
        await answer.say(*await pagination.list_page(interaction, pagination.PagedList.BOARDS))


@app_commands.command(description="Show the task of a board, with all its files")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def task(interaction: Interaction, leaderboard_name: str) -> None:
    """Show the description, then the files."""
    async with replying(interaction) as answer:
        store = context_of(interaction).store
        viewer = await roles.viewer_of(interaction)
        await answer.show(task_report(*await lookup.task_of(store, viewer, leaderboard_name)))


@app_commands.command(description="Starter file for this task")
@app_commands.describe(leaderboard_name="The board", lang="Language of the template")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def template(
    interaction: Interaction, leaderboard_name: str, lang: str | None = None
) -> None:
    """Send the template of the language, which may be omitted if there is only one."""
    async with replying(interaction) as answer:
        store, viewer = context_of(interaction).store, await roles.viewer_of(interaction)
        board, definition = await lookup.task_of(store, viewer, leaderboard_name)
        await answer.show(template_report(board, definition, lang))


@template.autocomplete("lang")
async def _languages(interaction: Interaction, current: str) -> list[app_commands.Choice[str]]:
    board = getattr(interaction.namespace, "leaderboard_name", None)
    try:
        viewer = await roles.viewer_of(interaction)
        _, definition = await lookup.task_of(context_of(interaction).store, viewer, str(board))
    except (UserError, StoreError):
        return []
    fitting = [name for name in definition.templates if current.casefold() in name.casefold()]
    return options.choices(fitting)


_HELP = """\
**Getting started**
1. `/leaderboard list` shows the boards; `/leaderboard task` shows the task of a board.
2. `/leaderboard template` gives you a starter file.
3. `/leaderboard submit test` tests it; you get a private thread with the full report.
4. `/leaderboard submit ranked` times and ranks it; `/leaderboard show` shows the standings.

A file may name its board and GPU types in a header, the comments at its top:
```
#!PODIUM leaderboard vectoradd
#!PODIUM gpus H100 L4
```
`/profile notices` turns on notifications about deadlines, lost ranks and records.
Times are by the judge's own clock, with their uncertainty (±). Lower is better, and times that \
cannot be told apart share a rank.
"Confirmation pending": a run that would take one of the first three places is first compared with \
the run that holds the place, in turns on one card. Once a worker is free this takes seconds to a \
few minutes; until then your earlier best stays ranked.
All commands are listed below."""


@app_commands.command(name="help", description="Getting started and list of commands")
async def show_help(interaction: Interaction) -> None:
    """Show the first steps, then the list."""
    async with replying(interaction) as answer:
        commands = join_into_messages(command_lines(interaction.client.tree))
        await answer.show_all([MessageDraft(_HELP), *map(MessageDraft, commands)])


def command_lines(tree: Tree) -> Iterator[str]:
    """Yield a line for each command, then for each menu, as shown in Discord."""
    for each in sorted(tree.walk_commands(), key=lambda one: one.qualified_name):
        if isinstance(each, app_commands.Command):
            yield f"`/{each.qualified_name}` {each.description}"
    for kind, action in _MENUS.items():
        for menu in tree.get_commands(type=kind):
            yield f"{action} > Apps > `{menu.name}`"


_MENUS = {
    discord.AppCommandType.message: "Right-click a message",
    discord.AppCommandType.user: "Right-click a person",
}

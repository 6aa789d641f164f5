"""`/leaderboard show|show-personal|compare-gpus|list|task|template|help`: what people look up."""

from collections.abc import Collection, Iterator
from typing import Any

import discord
from discord import app_commands

from bot.discord import options, pagination, roles, standings_view
from bot.discord.context import NEEDED_ROLE, Interaction, Tree, add_commands, context_of
from bot.discord.interaction_claims import replying
from bot.domain.errors import UserError
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
    """Show the first page of the viewer's own GPU type, or else of the one with most people.

    Buttons lead to other pages, a menu to other GPU types. With several GPU types, show the best
    ranks of each.
    """
    async with replying(interaction) as answer:
        context = context_of(interaction)
        viewer = await roles.viewer_of(interaction)
        names = list(dict.fromkeys(options.gpu_names(gpu)))
        if len(names) > standings_view.MAX_GPUS_AT_ONCE:
            most = standings_view.MAX_GPUS_AT_ONCE
            raise UserError("usage", f"at most {most} GPU types can be shown at once; name fewer")
        store, clock = context.store, context.clock
        names = names or [await standings.opening_gpu(store, viewer, leaderboard_name)]
        seasons = [
            await standings.season(store, clock, viewer, leaderboard_name, gpu=each)
            for each in names
        ]
        await answer.show(*standings_view.standings_view(seasons, viewer.person))


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
@app_commands.autocomplete(leaderboard_name=options.boards, lang=options.languages)
async def template(
    interaction: Interaction, leaderboard_name: str, lang: str | None = None
) -> None:
    """Send the template of the language, which may be omitted if there is only one."""
    async with replying(interaction) as answer:
        store, viewer = context_of(interaction).store, await roles.viewer_of(interaction)
        board, definition = await lookup.task_of(store, viewer, leaderboard_name)
        await answer.show(template_report(board, definition, lang))


_HELP = """\
**Getting started**
1. `/leaderboard list` shows the boards, `/leaderboard task` a task.
2. `/leaderboard template` gives you a starter file.
3. `/leaderboard submit test` tests it and reports to you alone.
4. `/leaderboard submit ranked` times and ranks it.
5. `/leaderboard show` shows the standings.

A header, the comments at a file's top, may name board and GPU types:
```
#!PODIUM leaderboard vectoradd
#!PODIUM gpus H100 L4
```
`/profile notices` chooses your notifications.

**Times** are by the judge's own clock, with their uncertainty (±). Lower is better. Times that \
cannot be told apart share a rank.
**Confirmation pending:** a run that would take one of the first three places is first compared \
with its holder, in turns on the same machine. Until then your earlier best stays ranked.

"""


@app_commands.command(name="help", description="Getting started and list of commands")
async def show_help(interaction: Interaction) -> None:
    """Show the first steps, then the commands that the person may use, in one message."""
    async with replying(interaction) as answer:
        lines = "\n".join(command_lines(interaction.client.tree, _rights_here(interaction)))
        await answer.say(f"{_HELP}{lines}")


def _rights_here(interaction: Interaction) -> frozenset[str]:
    """Return the roles whose commands the person may use here."""
    if roles.has_role(interaction, roles.ADMIN):
        return frozenset({roles.ADMIN, roles.CREATOR})
    creates = roles.has_role(interaction, roles.CREATOR)
    return frozenset({roles.CREATOR} if creates else ())


def command_lines(tree: Tree, rights: Collection[str]) -> Iterator[str]:
    """Yield a line for each group of commands that a person with these roles may use."""
    groups: dict[str, list[str]] = {}
    for each in sorted(tree.walk_commands(), key=lambda one: one.qualified_name):
        if isinstance(each, app_commands.Command) and may_use(each, rights):
            group, _, name = each.qualified_name.rpartition(" ")
            groups.setdefault(group, []).append(f"`{name}`")
    for group, names in groups.items():
        yield f"**/{group}** {' '.join(names)}"
    for kind, action in _MENUS.items():
        menus = tree.get_commands(type=kind)
        names = [
            f"`{menu.name}`"
            for menu in menus
            if menu.default_permissions is None or roles.ADMIN in rights
        ]
        if names:
            yield f"{action} > Apps > {' '.join(names)}"


def may_use(command: app_commands.Command[Any, ..., Any], rights: Collection[str]) -> bool:
    """Return whether a command needs no role, or one of these."""
    if command.root_parent is not None and command.root_parent.default_permissions is not None:
        return roles.ADMIN in rights
    needed = command.extras.get(NEEDED_ROLE)
    return needed is None or needed in rights


_MENUS = {
    discord.AppCommandType.message: "Right-click or hold a message",
    discord.AppCommandType.user: "Right-click or hold a person",
}

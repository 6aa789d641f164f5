"""The command groups, which several files add to: `/leaderboard`, `/submission` and the rest."""

from typing import Any, TypeAlias

from discord import app_commands

Tree: TypeAlias = app_commands.CommandTree[Any]
"""The commands of a client."""

_DESCRIPTIONS = {
    "leaderboard": "Boards: submit to them, look at them, make them",
    "leaderboard submit": "Send a kernel to a board",
    "submission": "What you have submitted",
    "admin": "Keep order: people, submissions, limits",
    "profile": "Your account",
}


_OF_SERVERS = frozenset({"admin"})
"""Groups that a person's roles decide about, so that they are of no use in direct messages."""
_ON_SERVERS = app_commands.AppCommandContext(guild=True)


def group(tree: Tree, name: str) -> app_commands.Group:
    """The group of this name, made when it is first asked for; a space leads into a subgroup."""
    parent_name, _, own_name = name.rpartition(" ")
    parent = group(tree, parent_name) if parent_name else None
    found = (parent or tree).get_command(own_name)
    if isinstance(found, app_commands.Group):
        return found
    made = app_commands.Group(
        name=own_name,
        description=_DESCRIPTIONS[name],
        parent=parent,
        allowed_contexts=_ON_SERVERS if name in _OF_SERVERS else None,
    )
    if parent is None:
        tree.add_command(made)
    return made

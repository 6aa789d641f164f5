"""The permissions that the bot needs, why, and the link that asks for just these."""

import discord

NEEDED = {
    "view_channel": "to see the channels in which people submit",
    "send_messages": "to answer, and to tell of boards and places",
    "send_messages_in_threads": "to report into a submission's thread",
    "create_public_threads": "to open a thread beneath the line that tells of a place",
    "create_private_threads": "to give each submission a thread of its own",
    "manage_threads": "to bring a person into that thread, and to wake one that sleeps",
    "attach_files": "to hand out long logs, task files and plots",
    "embed_links": "to show links as such",
    "read_message_history": "to edit its own messages after a restart",
    "manage_roles": "to make the roles Leaderboard Admin and Leaderboard Creator",
    "manage_channels": "to make #submissions",
}
"""By discord.py's names; nobody's messages are read, so no privileged intent is needed."""


def wanted() -> discord.Permissions:
    """All of them as one value."""
    return discord.Permissions(**dict.fromkeys(NEEDED, True))


def lacking(granted: int) -> tuple[str, ...]:
    """What is missing of a guild's grant, as Discord's own settings name it."""
    has = discord.Permissions(granted)
    if has.administrator:
        return ()
    return tuple(name.replace("_", " ").title() for name in NEEDED if not getattr(has, name))


def invite_link(application: int) -> str:
    """Where whoever manages a guild lets the bot in."""
    return discord.utils.oauth_url(
        application, permissions=wanted(), scopes=("bot", "applications.commands")
    )

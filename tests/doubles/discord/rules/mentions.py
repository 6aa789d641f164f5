"""Who is notified: those mentioned in the text, as far as `allowed_mentions` permits."""

import re

from tests.doubles.discord.errors import Form
from tests.doubles.discord.model.messages import EVERYONE, Message
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.wire import Json

LISTED = 100
_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(everyone|here)\b")


def check_allowed_mentions(form: Form, allowed: Json | None) -> None:
    for kind in ("users", "roles"):
        listed = (allowed or {}).get(kind) or []
        form.at_most(f"allowed_mentions.{kind}", listed, LISTED)
        if listed and kind in (allowed or {}).get("parse", []):
            message = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            form.wrong("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)


def mentioned(message: Message, allowed: Json | None) -> list[int]:
    """Return the users that the message mentions, and the author of the message it replies to."""
    users = message.channel.world.users
    named = [int(user) for user in _USER.findall(message.pinging_text) if int(user) in users]
    return list(dict.fromkeys(named + _answered(message, allowed)))


def notified(message: Message, allowed: Json | None) -> set[int | str]:
    """Return the ids of the users and roles that are notified, and "everyone"."""
    text = message.pinging_text
    users = {user for user in mentioned(message, {}) if _allows(allowed, "users", user)}
    roles = {role for role in _roles(message, text) if _allows(allowed, "roles", role)}
    everyone = (
        _EVERYONE.search(text)
        and _may_mention_everyone(message)
        and _allows(allowed, EVERYONE, None)
    )
    return users | roles | set(_answered(message, allowed)) | ({EVERYONE} if everyone else set())


def _answered(message: Message, allowed: Json | None) -> list[int]:
    """Return the author of the message that a reply is to, if they are to be notified."""
    wanted = True if allowed is None else allowed.get("replied_user", False)
    answered = message.reference.author if message.reference else message.author
    return [answered.id] if wanted and answered is not message.author else []


def _allows(allowed: Json | None, kind: str, number: int | None) -> bool:
    if allowed is None or kind in allowed.get("parse", []):
        return True
    return str(number) in map(str, allowed.get(kind) or [])


def _roles(message: Message, text: str) -> list[int]:
    guild = message.channel.guild
    roles = [guild.roles.get(int(role)) for role in _ROLE.findall(text)] if guild else []
    free = _may_mention_everyone(message)
    return [role.id for role in roles if role and (role.mentionable or free)]


def _may_mention_everyone(message: Message) -> bool:
    channel = message.channel
    may = channel.world.can(message.author, channel, Permission.MENTION_EVERYONE)
    return channel.guild is not None and may

"""What a user may do in a guild or channel: roles, then overwrites (a thread has its channel's)."""

from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.people import Member, User
from tests.doubles.discord.permissions import EVERYTHING, Permission

_WHILE_TIMED_OUT = Permission.VIEW_CHANNEL | Permission.READ_MESSAGE_HISTORY


def effective(user: User, place: Channel | Guild, now: float) -> Permission:
    guild = place if isinstance(place, Guild) else place.guild
    if guild is None:
        return EVERYTHING if user in _recipients(place) else Permission.NONE
    member = guild.members.get(user.id)
    if member is None:
        return Permission.NONE
    granted = _of_roles(member, guild)
    if user is guild.owner or granted & Permission.ADMINISTRATOR:
        return EVERYTHING
    if isinstance(place, Channel):
        granted = _overwritten(granted, member, guild, place)
    if member.timeout_until and member.timeout_until > now:
        granted &= _WHILE_TIMED_OUT
    return granted if isinstance(place, Guild) else _inside(granted, user, place)


def _recipients(place: Channel | Guild) -> list[User]:
    return place.recipients if isinstance(place, Channel) else []


def _of_roles(member: Member, guild: Guild) -> Permission:
    granted = guild.everyone.permissions
    for role in member.roles:
        granted |= guild.roles[role].permissions
    return granted


def _overwritten(granted: Permission, member: Member, guild: Guild, place: Channel) -> Permission:
    channel = place.parent if place.is_thread and place.parent else place
    for targets in ([guild.id], list(member.roles), [member.user.id]):
        entries = [channel.overwrites[target] for target in targets if target in channel.overwrites]
        allow = deny = Permission.NONE
        for entry in entries:
            allow, deny = allow | entry.allow, deny | entry.deny
        granted = granted & ~deny | allow
    return granted


def _inside(granted: Permission, user: User, channel: Channel) -> Permission:
    invited = user.id in channel.members or bool(granted & Permission.MANAGE_THREADS)
    if not granted & Permission.VIEW_CHANNEL or (channel.private and not invited):
        return Permission.NONE
    return granted

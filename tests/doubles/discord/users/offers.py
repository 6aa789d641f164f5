"""Which commands a person is offered in a place."""

from dataclasses import dataclass, field

from tests.doubles.discord.errors import DriverError
from tests.doubles.discord.kinds import NESTING, CommandKind
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.people import User
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.wire import Json

IN_GUILD, IN_DIRECT = 0, 1


def offered(user: User, channel: Channel) -> list[Json]:
    """Return every command that the person's client would show in a channel."""
    world = channel.world
    return [x for x in world.commands_in(channel.guild) if _is_offered(x, user, channel)]


def _is_offered(command: Json, user: User, channel: Channel) -> bool:
    use = Permission.VIEW_CHANNEL | Permission.USE_APPLICATION_COMMANDS
    if not channel.world.can(user, channel, use) or not _fits_place(command, channel):
        return False
    needed = command["default_member_permissions"]
    if needed is None or channel.guild is None:
        return True
    return channel.world.can(user, channel, Permission(int(needed)) or Permission.ADMINISTRATOR)


def _fits_place(command: Json, channel: Channel) -> bool:
    context = IN_GUILD if channel.guild else IN_DIRECT
    if command["contexts"] is not None and context not in command["contexts"]:
        return False
    return channel.guild is not None or command["dm_permission"] is not False


def find(name: str, kind: CommandKind, user: User, channel: Channel) -> Json:
    there = offered(user, channel)
    for command in there:
        if command["name"] == name and command["type"] == kind:
            return command
    names = sorted(command["name"] for command in there)
    message = f"{user.name} is not offered {name!r} in #{channel.name}; offered: {names}"
    raise DriverError(message)


@dataclass
class Invocation:
    """A slash command to be sent: its options, and the data of the interaction."""

    options: list[Json]
    data: Json
    filled: list[Json] = field(default_factory=list)
    """The innermost options of `data`."""


def invocation(path: str, user: User, channel: Channel) -> Invocation:
    """Return the command with a path such as "leaderboard submit ranked"."""
    first, *rest = path.split()
    command = find(first, CommandKind.SLASH, user, channel)
    filled: list[Json] = []
    options: list[Json] = command.get("options", [])
    data = sent(command) | {"options": filled}
    for part in rest:
        inner = _subcommand(options, part, path)
        deeper: list[Json] = []
        filled.append({"type": inner["type"], "name": part, "options": deeper})
        options, filled = inner.get("options", []), deeper
    if any(option["type"] in NESTING for option in options):
        raise DriverError(f"/{path} is a group; it has {[option['name'] for option in options]}")
    return Invocation(options, data, filled)


def _subcommand(options: list[Json], name: str, path: str) -> Json:
    for option in options:
        if option["name"] == name and option["type"] in NESTING:
            return option
    there = [option["name"] for option in options]
    raise DriverError(f"/{path}: no subcommand {name!r} in {there}")


def sent(command: Json) -> Json:
    """Return a command as it appears in the data of an interaction."""
    data: Json = {"id": command["id"], "name": command["name"], "type": command["type"]}
    return data | ({"guild_id": command["guild_id"]} if command.get("guild_id") else {})

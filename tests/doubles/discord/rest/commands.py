"""Registering commands: one by one, or all of a scope at once."""

from collections import Counter

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.kinds import CommandKind
from tests.doubles.discord.limits import COMMANDS, GUILD_COMMANDS
from tests.doubles.discord.model.world import Sync
from tests.doubles.discord.rest.calls import Answer, Call, route
from tests.doubles.discord.rules.commands import check_command
from tests.doubles.discord.wire import Json

EACH, BOTH = "{command_id}", (COMMANDS, GUILD_COMMANDS)
ONE = tuple(f"{path}/{EACH}" for path in BOTH)


def _scope(call: Call) -> int:
    if call.id("application_id") != call.world.bot.id:
        raise refusal(10002)
    guild = call.id("guild_id") if "guild_id" in call.path else 0
    if guild and guild not in call.world.guilds:
        raise refusal(50001)
    return guild


def _kind(raw: Json) -> int:
    return int(raw.get("type") or CommandKind.SLASH)


def _put(call: Call, scope: int, raw: Json) -> Json:
    """Store a command; one of the same name keeps its id."""
    world, kind = call.world, _kind(raw)
    old = world.commands.get((scope, kind, raw["name"]))
    needed = raw.get("default_member_permissions")
    command: Json = {
        "id": old["id"] if old else str(world.snowflake()),
        "application_id": str(world.bot.id),
        "version": str(world.snowflake()),
        "type": kind,
        "name": raw["name"],
        "name_localizations": None,
        "description": raw.get("description") or "",
        "description_localizations": None,
        "options": raw.get("options") or [],
        "nsfw": bool(raw.get("nsfw")),
        "default_member_permissions": None if needed is None else str(needed),
        "dm_permission": raw.get("dm_permission", True),
        "contexts": raw.get("contexts"),
        "integration_types": raw.get("integration_types") or [0],
    } | ({"guild_id": str(scope)} if scope else {})
    world.commands[(scope, kind, raw["name"])] = command
    return command


def _find(call: Call) -> Json:
    scope = _scope(call)
    for (where, _, _), command in call.world.commands.items():
        if where == scope and command["id"] == call.path["command_id"]:
            return command
    raise refusal(10063)


@route("GET", *BOTH)
def list_commands(call: Call) -> Answer:
    scope = _scope(call)
    return [command for (where, _, _), command in call.world.commands.items() if where == scope]


@route("PUT", *BOTH)
def overwrite_commands(call: Call) -> Answer:
    """Replace every command of a scope; each success is recorded as a sync."""
    scope, form, limits = _scope(call), Form(), call.world.limits
    counts = Counter(_kind(raw) for raw in call.body)
    menus = max(counts[CommandKind.USER_MENU], counts[CommandKind.MESSAGE_MENU])
    if counts[CommandKind.SLASH] > limits.commands or menus > limits.menu_commands:
        raise refusal(30032)
    for i, raw in enumerate(call.body):
        check_command(form, raw, f"{i}.")
    names = {(_kind(raw), raw.get("name")) for raw in call.body}
    if len(names) != len(call.body):
        message = "Application command names must be unique"
        form.wrong("0.name", "APPLICATION_COMMANDS_DUPLICATE_NAME", message)
    form.done()
    for key in list(call.world.commands):
        if key[0] == scope and key[1:] not in names:
            del call.world.commands[key]
    call.world.syncs.append(Sync(scope, [raw["name"] for raw in call.body]))
    return [_put(call, scope, raw) for raw in call.body]


@route("POST", *BOTH, status=201)
def create_command(call: Call) -> Answer:
    scope, form = _scope(call), Form()
    check_command(form, call.body)
    form.done()
    slash = [key for key in call.world.commands if key[:2] == (scope, CommandKind.SLASH)]
    if len(slash) >= call.world.limits.commands:
        raise refusal(30032)
    return _put(call, scope, call.body)


@route("GET", *ONE)
def get_command(call: Call) -> Answer:
    return _find(call)


@route("PATCH", *ONE)
def edit_command(call: Call) -> Answer:
    old, form = _find(call), Form()
    new = old | call.body
    check_command(form, new)
    form.done()
    del call.world.commands[(_scope(call), _kind(old), old["name"])]
    command = _put(call, _scope(call), new)
    command["id"] = old["id"]
    return command


@route("DELETE", *ONE)
def delete_command(call: Call) -> Answer:
    old = _find(call)
    del call.world.commands[(_scope(call), _kind(old), old["name"])]
    return None

"""Guilds, their roles and their members."""

from collections import Counter
from datetime import datetime

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.people import Member, Role
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.calls import Answer, Call, route
from tests.doubles.discord.wire import Json

GUILD = "/guilds/{guild_id}"
ROLES, ROLE = f"{GUILD}/roles", f"{GUILD}/roles/{{role_id}}"
MEMBERS, MEMBER = f"{GUILD}/members", f"{GUILD}/members/{{user_id}}"
MEMBER_ROLE = f"{MEMBER}/roles/{{role_id}}"
ROLE_NAME, NICK = 100, 32


@route("GET", GUILD)
def get_guild(call: Call) -> Answer:
    return call.guild().to_api()


@route("GET", ROLES)
def list_roles(call: Call) -> Answer:
    return [role.to_api() for role in call.guild().roles.values()]


@route("GET", f"{ROLES}/member-counts")
def count_members(call: Call) -> Answer:
    """The number of members with each role, except @everyone."""
    guild = call.guild()
    held = Counter(role for member in guild.members.values() for role in member.roles)
    return {str(role): held[role] for role in guild.roles if role != guild.id}


@route("POST", ROLES)
def create_role(call: Call) -> Answer:
    guild, body, form = call.guild(), call.body, Form()
    call.world.require(guild, Permission.MANAGE_ROLES)
    form.at_most("name", body.get("name"), ROLE_NAME)
    form.done()
    if len(guild.roles) >= call.world.limits.roles:
        raise refusal(30005)
    granted = _grantable(call, guild)
    role = guild.create_role(body.get("name") or "new role", granted or Permission.NONE)
    _change_role(call, guild, role)
    return role.to_api()


@route("PATCH", ROLE)
def edit_role(call: Call) -> Answer:
    guild, form = call.guild(), Form()
    role = call.manageable_role(call.id("role_id"))
    form.at_most("name", call.body.get("name"), ROLE_NAME)
    form.done()
    granted = _grantable(call, guild)
    role.permissions = role.permissions if granted is None else granted
    role.name = call.body.get("name", role.name)
    _change_role(call, guild, role)
    return role.to_api()


def _grantable(call: Call, guild: Guild) -> Permission | None:
    """Return the permissions that the body names; the bot must have them itself."""
    if call.body.get("permissions") is None:
        return None
    wanted = Permission(int(call.body["permissions"]))
    if wanted & ~call.world.permissions(call.world.bot, guild):
        raise refusal(50013)
    return wanted


def _change_role(call: Call, guild: Guild, role: Role) -> None:
    body = call.body
    colors: Json = body.get("colors") or {}
    role.color = body.get("color") or colors.get("primary_color") or role.color
    role.hoist = bool(body.get("hoist", role.hoist))
    role.mentionable = bool(body.get("mentionable", role.mentionable))
    data = {"guild_id": str(guild.id), "role": role.to_api()}
    call.world.dispatch("GUILD_ROLE_UPDATE", data)


@route("DELETE", ROLE)
def delete_role(call: Call) -> Answer:
    guild = call.guild()
    role = call.manageable_role(call.id("role_id"))
    del guild.roles[role.id]
    for member in guild.members.values():
        member.roles.discard(role.id)
    data = {"guild_id": str(guild.id), "role_id": str(role.id)}
    call.world.dispatch("GUILD_ROLE_DELETE", data)
    return None


@route("PUT", MEMBER_ROLE)
def give_role(call: Call) -> Answer:
    guild, member = call.guild(), call.member()
    member.roles.add(call.manageable_role(call.id("role_id")).id)
    guild.member_changed(member)
    return None


@route("DELETE", MEMBER_ROLE)
def take_role(call: Call) -> Answer:
    guild, member = call.guild(), call.member()
    member.roles.discard(call.manageable_role(call.id("role_id")).id)
    guild.member_changed(member)
    return None


@route("GET", f"{MEMBERS}/search")
def search_members(call: Call) -> Answer:
    begin = call.query.get("query", "").lower()
    members = call.guild().members.values()
    found = [member for member in members if member.user.name.lower().startswith(begin)]
    return [member.to_api() for member in found[: call.number("limit", 1)]]


@route("GET", MEMBERS)
def list_members(call: Call) -> Answer:
    members = sorted(call.guild().members.values(), key=lambda member: member.user.id)
    found = [member for member in members if member.user.id > call.number("after", 0)]
    return [member.to_api() for member in found[: call.number("limit", 1)]]


@route("GET", MEMBER)
def get_member(call: Call) -> Answer:
    return call.member().to_api()


@route("PATCH", MEMBER)
def edit_member(call: Call) -> Answer:
    guild, member = call.guild(), call.member()
    me = member is guild.me
    if "nick" in call.body:
        mine, others = Permission.CHANGE_NICKNAME, Permission.MANAGE_NICKNAMES
        call.world.require(guild, mine if me else others)
        form = Form()
        form.at_most("nick", call.body["nick"], NICK)
        form.done()
    above = member.user is guild.owner or guild.rank(member) >= guild.rank(guild.me)
    if not me and above:
        raise refusal(50013)
    _change_member(call, guild, member)
    guild.member_changed(member)
    return member.to_api()


def _change_member(call: Call, guild: Guild, member: Member) -> None:
    body = call.body
    if "roles" in body:
        roles = {int(role) for role in body["roles"]}
        for role in member.roles ^ roles:
            call.manageable_role(role)
        member.roles = roles
    if "communication_disabled_until" in body:
        call.world.require(guild, Permission.MODERATE_MEMBERS)
        until = body["communication_disabled_until"]
        member.timeout_until = datetime.fromisoformat(until).timestamp() if until else None
    member.nick = body.get("nick", member.nick)

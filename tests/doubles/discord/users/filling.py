"""The values of options and menus, checked as a client checks them before it sends them."""

from collections.abc import Iterable
from typing import NoReturn

from tests.doubles.discord.errors import DriverError
from tests.doubles.discord.kinds import ComponentKind as Kind
from tests.doubles.discord.kinds import OptionKind
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.people import Role, User
from tests.doubles.discord.wire import Json

Value = str | int | float | bool | File | User | Role | Channel
Sent = str | int | float | bool

STRING, NUMBER = 6000, 2**53
_OF_SELECT = {
    Kind.USER_SELECT: OptionKind.USER,
    Kind.ROLE_SELECT: OptionKind.ROLE,
    Kind.MENTIONABLE_SELECT: OptionKind.MENTIONABLE,
    Kind.CHANNEL_SELECT: OptionKind.CHANNEL,
}
_NUMBERS = (OptionKind.INTEGER, OptionKind.NUMBER)


def _refuse(option: Json, value: object) -> NoReturn:
    raise DriverError(f"option {option.get('name')}: {value!r} not accepted")


class Filling:
    """Converts the values of one interaction, and collects the objects that they name."""

    def __init__(self, user: User, channel: Channel) -> None:
        self._user, self._channel, self._world = user, channel, channel.world
        self.resolved: dict[str, Json] = {}

    def option(self, option: Json, value: Value) -> Json:
        sent = self.value(option, value)
        return {"type": option["type"], "name": option["name"], "value": sent}

    def value(self, option: Json, value: Value) -> Sent:
        if option.get("choices"):
            value = self._choice(option, value)
        if isinstance(value, File):
            return self._file(option, value)
        if isinstance(value, User):
            return self._person(option, value)
        if isinstance(value, Role):
            return self._role(option, value)
        return self._place(option, value) if isinstance(value, Channel) else _plain(option, value)

    @staticmethod
    def _choice(option: Json, value: Value) -> Sent:
        for choice in option["choices"]:
            if value in (choice["value"], choice["name"]):
                chosen: Sent = choice["value"]
                return chosen
        _refuse(option, value)

    def _name(self, table: str, number: int, data: Json) -> str:
        self.resolved.setdefault(table, {})[str(number)] = data
        return str(number)

    def _file(self, option: Json, file: File) -> str:
        if option["type"] != OptionKind.ATTACHMENT or len(file.data) > self._world.limits.file_size:
            _refuse(option, f"{file.filename} of {len(file.data)} bytes")
        stored = self._world.store(file, f"ephemeral-attachments/{self._world.bot.id}")
        return self._name("attachments", stored.id, stored.to_api())

    def _person(self, option: Json, user: User) -> str:
        if option["type"] not in (OptionKind.USER, OptionKind.MENTIONABLE):
            _refuse(option, user.name)
        self.name_user(user)
        return str(user.id)

    def name_user(self, user: User) -> None:
        guild = self._channel.guild
        self._name("users", user.id, user.to_api())
        if guild and user.id in guild.members:
            permissions = self._world.permissions(user, guild)
            self._name("members", user.id, guild.members[user.id].to_resolved(permissions))

    def _role(self, option: Json, role: Role) -> str:
        if option["type"] not in (OptionKind.ROLE, OptionKind.MENTIONABLE):
            _refuse(option, role.name)
        return self._name("roles", role.id, role.to_api())

    def _place(self, option: Json, channel: Channel) -> str:
        wanted = option.get("channel_types") or [channel.kind]
        if option["type"] != OptionKind.CHANNEL or channel.kind not in wanted:
            _refuse(option, channel.name)
        permissions = str(int(self._world.permissions(self._user, channel)))
        return self._name("channels", channel.id, channel.to_api() | {"permissions": permissions})

    def chosen(self, menu: Json, values: Iterable[Value]) -> list[Sent]:
        """Return what a menu sends for these choices: values, labels, or users, roles, channels."""
        picked = list(values)
        if menu["type"] in (Kind.STRING_SELECT, Kind.CHECKBOX_GROUP, Kind.RADIO_GROUP):
            sent = _picked(menu, picked)
        else:
            option = {"type": _OF_SELECT[Kind(menu["type"])], "name": "menu"}
            sent = [self.value(option, value) for value in picked]
        low, high = menu.get("min_values", 1), menu.get("max_values", 1)
        if not low <= len(sent) <= high or len(set(sent)) != len(sent):
            raise DriverError(f"{len(sent)} values chosen, allowed are {low}..{high}")
        return sent


def _picked(menu: Json, values: list[Value]) -> list[Sent]:
    table = {
        option[key]: option["value"] for option in menu["options"] for key in ("label", "value")
    }
    unknown = [value for value in values if value not in table]
    if unknown:
        raise DriverError(f"options {unknown} are not offered: {list(table)}")
    return [table[value] for value in values]


def _plain(option: Json, value: Sent) -> Sent:
    kind, fits = option["type"], False
    if kind == OptionKind.BOOLEAN or isinstance(value, bool):
        fits = kind == OptionKind.BOOLEAN and isinstance(value, bool)
    elif isinstance(value, str):
        within = option.get("min_length", 0) <= len(value) <= option.get("max_length", STRING)
        fits = kind == OptionKind.STRING and within
    else:
        whole = isinstance(value, int) or kind == OptionKind.NUMBER
        within = option.get("min_value", -NUMBER) <= value <= option.get("max_value", NUMBER)
        fits = kind in _NUMBERS and whole and within
    return value if fits else _refuse(option, value)

"""The numeric codes of Discord's protocol."""

from enum import IntEnum, IntFlag


class ChannelKind(IntEnum):
    """The kinds of channels that this server has."""

    TEXT = 0
    DM = 1
    CATEGORY = 4
    NEWS = 5
    NEWS_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


class MessageKind(IntEnum):
    """Why a message exists."""

    DEFAULT = 0
    THREAD_CREATED = 18
    REPLY = 19
    SLASH_COMMAND = 20
    CONTEXT_MENU_COMMAND = 23


class Flag(IntFlag):
    """What is special about a message."""

    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    COMPONENTS_V2 = 1 << 15


class Intent(IntFlag):
    """The events that a gateway session requests."""

    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    DIRECT_MESSAGES = 1 << 12
    MESSAGE_CONTENT = 1 << 15


PRIVILEGED = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT
"""Intents that a session may request only if the application has them."""


class InteractionKind(IntEnum):
    """What a person did."""

    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL = 5


class Callback(IntEnum):
    """How a bot answers an interaction first."""

    MESSAGE = 4
    DEFERRED_MESSAGE = 5
    DEFERRED_UPDATE = 6
    UPDATE = 7
    CHOICES = 8
    MODAL = 9


class CommandKind(IntEnum):
    """Where a command is offered."""

    SLASH = 1
    USER_MENU = 2
    MESSAGE_MENU = 3


class OptionKind(IntEnum):
    """What a command's option takes."""

    SUBCOMMAND = 1
    GROUP = 2
    STRING = 3
    INTEGER = 4
    BOOLEAN = 5
    USER = 6
    CHANNEL = 7
    ROLE = 8
    MENTIONABLE = 9
    NUMBER = 10
    ATTACHMENT = 11


NESTING = (OptionKind.SUBCOMMAND, OptionKind.GROUP)


class ComponentKind(IntEnum):
    """The parts of messages and modals."""

    ROW = 1
    BUTTON = 2
    STRING_SELECT = 3
    TEXT_INPUT = 4
    USER_SELECT = 5
    ROLE_SELECT = 6
    MENTIONABLE_SELECT = 7
    CHANNEL_SELECT = 8
    SECTION = 9
    TEXT_DISPLAY = 10
    THUMBNAIL = 11
    GALLERY = 12
    FILE = 13
    SEPARATOR = 14
    CONTAINER = 17
    LABEL = 18
    FILE_UPLOAD = 19
    RADIO_GROUP = 21
    CHECKBOX_GROUP = 22
    CHECKBOX = 23


SELECTS = (
    ComponentKind.STRING_SELECT,
    ComponentKind.USER_SELECT,
    ComponentKind.ROLE_SELECT,
    ComponentKind.MENTIONABLE_SELECT,
    ComponentKind.CHANNEL_SELECT,
)
LINK, PREMIUM = 5, 6
"""Styles of buttons that send no interaction."""

"""Discord's limits; a test may lower one to reach it with few requests."""

from dataclasses import dataclass, field

Route = tuple[str, str]
"""A method and a path with its parameters in braces."""

MESSAGES = "/channels/{channel_id}/messages"
MESSAGE = f"{MESSAGES}/{{message_id}}"
THREADS = "/channels/{channel_id}/threads"
FOLLOWUPS = "/webhooks/{webhook_id}/{webhook_token}"
CALLBACK = "/interactions/{interaction_id}/{interaction_token}/callback"
COMMANDS = "/applications/{application_id}/commands"
GUILD_COMMANDS = "/applications/{application_id}/guilds/{guild_id}/commands"
CHANNEL = "/channels/{channel_id}"

RENAMES = (2, 600.0)
"""Renaming a channel has its own limit, which no response header shows."""

DEFAULT_RATE = (20, 5.0)


@dataclass
class Limits:
    """The documented limits."""

    response_deadline: float = 3.0
    token_lifetime: float = 900.0
    content: int = 2000
    embeds: int = 10
    embed_total: int = 6000
    attachments: int = 10
    file_size: int = 10 * 1024 * 1024
    rows: int = 5
    select_options: int = 25
    choices: int = 25
    custom_id: int = 100
    thread_name: int = 100
    active_threads: int = 1000
    roles: int = 250
    channels: int = 500
    commands: int = 100
    menu_commands: int = 15
    gateway_sends: int = 120
    global_rate: int = 50
    heartbeat_interval: float = 41.25
    resume_window: float = 120.0


def _rates() -> dict[Route, tuple[int, float]]:
    return {
        ("POST", MESSAGES): (5, 5),
        ("PATCH", MESSAGE): (5, 5),
        ("DELETE", MESSAGE): (5, 1),
        ("PUT", f"{MESSAGE}/reactions/{{emoji}}/@me"): (1, 0.25),
        ("POST", f"{MESSAGES}/bulk-delete"): (1, 3),
        ("POST", THREADS): (10, 10),
        ("POST", f"{MESSAGE}/threads"): (10, 10),
        ("POST", FOLLOWUPS): (5, 2),
        ("PATCH", f"{FOLLOWUPS}/messages/{{message_id}}"): (5, 2),
        ("PUT", GUILD_COMMANDS): (5, 20),
        ("PUT", COMMANDS): (5, 20),
    }


@dataclass
class Rates:
    """Requests and seconds of each window, per route and major parameter.

    Discord does not publish these numbers; a client must obey the headers. They are close to those
    seen in production. `scale` shortens the windows; 0 switches the limits off.
    """

    scale: float = 1.0
    routes: dict[Route, tuple[int, float]] = field(default_factory=_rates)

    def of(self, method: str, path: str) -> tuple[int, float]:
        count, seconds = self.routes.get((method, path), DEFAULT_RATE)
        return count, seconds * self.scale

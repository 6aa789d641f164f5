"""Gateway sessions: each outlives its websocket, so that it can be resumed."""

from __future__ import annotations

import collections
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.discord.kinds import Intent
from tests.doubles.discord.wire import Json

if TYPE_CHECKING:
    from tests.doubles.discord.gateway.socket import Socket

REPLAYED = 1000
"""How many events are kept for a client that resumes."""


@dataclass(eq=False)
class Session:
    """The session of a client that has identified, with its recent events."""

    intents: Intent
    shard: tuple[int, int] = (0, 1)
    socket: Socket | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    sequence: int = 0
    lost: float = 0.0
    resumes: int = 0
    sent: collections.deque[tuple[int, str, Json]] = field(
        default_factory=lambda: collections.deque(maxlen=REPLAYED)
    )

    def push(self, event: str, data: Json) -> None:
        """Send a copy of an event, or keep it for later."""
        self.sequence += 1
        frozen = json.loads(json.dumps(data))
        self.sent.append((self.sequence, event, frozen))
        if self.socket:
            self.socket.event(event, frozen, self.sequence)

    def replay(self, after: int) -> None:
        assert self.socket is not None
        for sequence, event, data in self.sent:
            if sequence > after:
                self.socket.event(event, data, sequence)

    def receives(self, guild: int) -> bool:
        number, count = self.shard
        return not guild or (guild >> 22) % count == number


class Sessions(dict[str, Session]):
    """All sessions by id, including those without a websocket."""

    @property
    def connected(self) -> list[Session]:
        return [session for session in self.values() if session.socket]

    def listening(self, guild: int, intent: Intent) -> Iterator[Session]:
        """Yield the sessions of this guild's shard with this intent; 0 stands for any."""
        for session in list(self.values()):
            if session.receives(guild) and (not intent or session.intents & intent):
                yield session
